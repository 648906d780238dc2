"""Run one trial, from its spec to its record. Only this module brings scenario, architecture, model and faults together, and
turns exceptions into outcomes."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.common.errors import CallFailed, GaveUp, ResultsError, Ungraded, Unguarded, Unmeasured, whole_text
from bench.common.registry import attribute_at
from bench.common.values import dataclass
from bench.record.events import Called
from bench.record.places import place_of
from bench.record.record import Outcome, TrialRecord, outcome_of
from bench.run.models.base import Response
from bench.run.packs.environments import ENVIRONMENTS
from bench.run.trial.faults import Strike
from bench.run.trial.log import TrialLog
from bench.run.trial.slots import Slots
from bench.run.trial.trial import Surroundings, Trial
from bench.run.trial.workbench import Workbench
from bench.scenario import Grade, Scenario, TaskEnvironment

if TYPE_CHECKING:  # the other imports show what a trial runs through (`bench.run.experiment.code`)
    from bench.run.experiment.grading import Graders
    from bench.run.experiment.matrix import Matrix, TrialSpec


@dataclass(frozen=True)
class TrialResult:
    """The record of a trial, the texts that its events name by digest, and the exception behind an infrastructure error.

    strikes   the planned strikes, in order: (the fault's number in the plan, from 0, and its strike)
    """

    record: TrialRecord
    texts: dict[str, str]
    failure: CallFailed | None = None
    strikes: tuple[tuple[int, Strike], ...] = ()


UNFIT_GRADE = Grade(False, 0.0, {}, "an output of the final answer does not fit its schema")
"""The grade of an answer with an output that does not fit its schema: the output was damaged after it had been verified."""


@dataclass(frozen=True)
class Ending:
    """The end of a trial. `failure` is the endpoint's failure, if there was one; `traceback` is the traceback of a bug, as
    text."""

    outcome: Outcome
    reason: str = ""
    grade: Grade | None = None
    failure: CallFailed | None = None
    traceback: str = ""


async def run_trial(
    spec: TrialSpec,
    matrix: Matrix,
    slots: Slots,
    graders: Graders,
    on_response: Callable[[Response], object] = lambda _: None,
    on_counted: Callable[[Response], object] = lambda _: None,
) -> TrialResult:
    """Run one trial to its end, and return its record. Whatever goes wrong in the trial becomes an outcome.

    Args:
        spec: The scenario, architecture, model, fault plan and repetition of the trial.
        matrix: The matrix that has the trial.
        slots: The limits on concurrent calls of the model.
        graders: The functions that grade the answer.
        on_response: Gets each response of the model as it arrives.
        on_counted: Gets each response once its tokens are counted.

    Returns:
        The trial's record, with the texts that it refers to.

    Raises:
        ResultsError: A response cannot be kept.
        CancelledError: The trial was cancelled.
    """
    arm = matrix.arm(spec)
    scenario = arm.scenario
    trial = Trial(
        scenario,
        arm.model,
        spec.plan,
        matrix.key(spec),
        arm.settings,
        slots=slots,
        back_off=matrix.back_off,
        server=matrix.server,
        log=TrialLog(on_response, on_counted),
        around=partial(_make_surroundings, environment=scenario.environment),
    )
    workbench = Workbench(trial)
    try:
        work = partial(arm.architecture.work, scenario.task, workbench)
        ending = await _within_deadline(matrix.config.deadline_seconds, _run_and_grade(trial, work, scenario, graders))
    finally:
        trial.surroundings.close()
    trial.close(answered=ending.grade is not None)
    log, clock = trial.log, trial.clock
    record = TrialRecord(
        id=spec.id,
        scenario=spec.scenario,
        architecture=spec.architecture,
        model=spec.model,
        plan=spec.plan.name,
        repetition=spec.repetition,
        outcome=ending.outcome,
        reason=" ".join(whole_text(ending.reason).split()),
        grade=ending.grade,
        tokens=trial.caller.tokens,
        api_seconds=clock.api_seconds,
        waiting_seconds=clock.waiting_seconds,
        framework_seconds=clock.framework_seconds,
        timing=arm.model.timing,
        events=tuple(log.events),
        instance=spec.instance,
        traceback=log.keep_text(ending.traceback) if ending.traceback else None,
    )
    strikes = tuple((receipt.due.number, receipt.due.strike) for receipt in trial.schedule.receipts)
    return TrialResult(record, log.texts, ending.failure, strikes)


def _make_surroundings(trial: Trial, environment: TaskEnvironment | None) -> Surroundings:
    """Make the surroundings of a trial's task."""
    if environment is None:
        return Surroundings()
    surroundings: Surroundings = attribute_at(ENVIRONMENTS[environment.part].trial).around(trial, environment)
    return surroundings


async def _within_deadline(deadline: float, ending: Coroutine[Any, Any, Ending]) -> Ending:
    """Await the ending of a trial. Return an error if it takes more than `deadline` real seconds."""
    try:
        async with asyncio.timeout(deadline):
            return await ending
    except TimeoutError:
        return Ending("error", f"no end within {deadline:g} s; give it more with deadline_seconds, or see what it waits for")


async def _run_and_grade(
    trial: Trial, work: Callable[[], Coroutine[Any, Any, None]], scenario: Scenario, graders: Graders
) -> Ending:
    """Run the architecture, grade its result, and return the ending. An exception becomes an outcome."""
    early_ending = None
    try:
        await trial.surroundings.run_architecture(trial, work)
    except Exception as error:
        early_ending = _ending_of_exception(error, trial.log)
    try:
        answer = trial.surroundings.end(trial, early_ending is not None)
        if early_ending:
            return early_ending
        grade = UNFIT_GRADE if answer is None else await graders.grade(scenario, answer)
    except Exception as error:
        return early_ending or _ending_of_exception(error, trial.log)
    return Ending(outcome_of(grade), grade=grade)


def _ending_of_exception(error: Exception, log: TrialLog) -> Ending:
    """Return the ending that an exception causes. In a group of exceptions, the first that means an error counts, else the
    first. Raises a ResultsError again: a response could not be stored, and would have to be asked for again."""
    match error:
        case ExceptionGroup():
            endings = [_ending_of_exception(inner, log) for inner in error.exceptions]
            return next((ending for ending in endings if ending.outcome == "error"), endings[0])
        case GaveUp():
            return Ending("gave_up", str(error))
        case Ungraded():
            return Ending("ungraded", str(error))
        case CallFailed():
            return Ending("error", f"{error.kind}: {error.detail}", failure=error)
        case Unguarded() | Unmeasured():
            return Ending("error", str(error))
        case ResultsError():
            raise error
        case _:
            return _ending_of_bug(error, log)


def _ending_of_bug(bug: Exception, log: TrialLog) -> Ending:
    """Return the ending of a trial with a bug. Its reason has the file and line, and the subtasks of the last call."""
    subtasks = next((event.subtasks for event in reversed(log.events) if isinstance(event, Called)), ())
    last_call = f"after a call for {' + '.join(subtasks)}" if subtasks else "before any call"
    where = ", ".join(filter(None, (place_of(bug), last_call)))
    text = "".join(traceback.format_exception(bug))
    return Ending("error", f"{type(bug).__name__}: {bug} ({where})", traceback=text)
