"""One trial, from its spec to its record: the one join of scenario, architecture, model and faults, and the one place that
turns exceptions into outcomes."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.errors import CallFailed, CannotStart, GaveUp, ResultsError, Ungraded, Unguarded, whole_text
from bench.experiment.places import place_of
from bench.experiment.record import Outcome, TrialRecord, outcome_of
from bench.models.base import Response
from bench.runtime.caller import Caller
from bench.runtime.checks import Checks, Reference, unknown
from bench.runtime.clock import TrialClock
from bench.runtime.events import Called
from bench.runtime.faults import FaultSchedule
from bench.runtime.injection import Injection
from bench.runtime.log import TrialLog
from bench.runtime.slots import Slots
from bench.runtime.state import State
from bench.runtime.workbench import Workbench
from bench.scenario import Grade, Scenario
from bench.worlds.environment import World
from bench.worlds.runtime.acting import Acting
from bench.worlds.runtime.process import Crashed

if TYPE_CHECKING:  # what a trial runs through is found in the other imports (`bench.experiment.code`)
    from bench.architectures.part import Architecture
    from bench.experiment.grading import Graders
    from bench.experiment.matrix import Matrix, TrialSpec


@dataclass(frozen=True)
class TrialResult:
    """A record, the texts that its events name by digest, and the exception behind an infrastructure's error."""

    record: TrialRecord
    texts: dict[str, str]
    failure: CallFailed | None = None


UNFIT = Grade(False, 0.0, {}, "an output of the final answer does not fit its schema")
"""The grade of an answer that something spoiled after it had been verified."""


MOST_LIVES = 50
"""Processes of one trial's agent, each but the first after a crash."""


@dataclass(frozen=True)
class Ending:
    """How a trial ended. `failure` is the endpoint's, where it was that; `traceback` is that of a bug, a text."""

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
    """Run one trial to its end. Whatever goes wrong is an outcome; raised is only cancellation, and ResultsError where a
    response cannot be kept.

    `on_response` is told of each response of the model as it arrives, `on_counted` once its tokens are counted.
    """
    arm = matrix.arm(spec)
    scenario, model, settings, architecture = arm.scenario, arm.model, arm.settings, arm.architecture.work
    log, clock = TrialLog(on_response, on_counted), TrialClock(model.timing != "live")
    key = matrix.key(spec)
    schedule = FaultSchedule(spec.plan, key, log.emit)
    caller = Caller(model, clock, schedule, slots, matrix.back_off, log)
    environment = scenario.environment
    state = State(scenario.task, environment.given if environment else ())
    injection = Injection(state, schedule, scenario.wrong_outputs, settings.answer_format, settings.tags)
    checks = Checks(state, _reference_of(scenario), clock.apart, wait=scenario.checks_use_sandbox)
    workbench = Workbench(state, key, settings, caller, injection, log, matrix.server, checks)
    deadline = matrix.config.deadline_seconds
    if environment:
        with closing(World(environment, drawn_from=key.drawn_from, keeps_past=schedule.strikes_past)) as world:
            workbench.acting = Acting(world, schedule, clock, log)
            caller.mid_reply = workbench.acting.mid_reply
            living = ending_in_world(architecture, scenario, clock, workbench, workbench.acting, graders, log)
            ending = await _before(deadline, living)
    else:
        ending = await _before(deadline, _ending(architecture, scenario, clock, workbench, graders, log))
    workbench.close(schedule, answered=ending.grade is not None)
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
        tokens=caller.tokens,
        api_seconds=clock.api_seconds,
        waiting_seconds=clock.waiting_seconds,
        framework_seconds=clock.framework_seconds,
        timing=model.timing,
        events=tuple(log.events),
        instance=spec.instance,
        traceback=log.store_text(ending.traceback) if ending.traceback else None,
    )
    return TrialResult(record, log.texts, ending.failure)


def _reference_of(scenario: Scenario) -> Reference:
    """What the pack says is right."""
    environment = scenario.environment
    if environment:
        return environment.right or unknown
    return lambda subtask, _: scenario.reference[subtask]


async def _before(deadline: float, ending: Coroutine[Any, Any, Ending]) -> Ending:
    """How a trial ends, or that it does not within so many real seconds."""
    try:
        async with asyncio.timeout(deadline):
            return await ending
    except TimeoutError:
        return Ending("error", f"no end within {deadline:g} s; give it more with deadline_seconds, or see what it waits for")


async def _ending(
    architecture: Architecture,
    scenario: Scenario,
    clock: TrialClock,
    workbench: Workbench,
    graders: Graders,
    log: TrialLog,
) -> Ending:
    """Let the architecture work, have its answer graded, and turn whatever was raised into an outcome."""
    try:
        await clock.run(architecture(scenario.task, workbench))
        answer = workbench.answer()
        grade = await graders.grade(scenario, answer) if answer else UNFIT
    except Exception as error:
        return _ended_by(error, log)
    return Ending(outcome_of(grade), grade=grade)


async def ending_in_world(
    architecture: Architecture,
    scenario: Scenario,
    clock: TrialClock,
    workbench: Workbench,
    acting: Acting,
    graders: Graders,
    log: TrialLog,
) -> Ending:
    """Let the architecture work in its world, over all its lives; then see what became of the world, however it ended."""
    stopped = None
    try:
        async with workbench.lasting:
            await _live(architecture, scenario, clock, workbench, acting)
    except Exception as error:
        stopped = _ended_by(error, log)
    try:
        workbench.decisions()
        acting.end()
        if stopped:
            return stopped
        content = acting.world.snapshot().content
        grade = await graders.grade_world(scenario, content)
    except Exception as error:
        return stopped or _ended_by(error, log)
    return Ending(outcome_of(grade), grade=grade)


async def _live(
    architecture: Architecture, scenario: Scenario, clock: TrialClock, workbench: Workbench, acting: Acting
) -> None:
    """Start the architecture, and again on the same world and the same store each time that it dies. Raises GaveUp where it
    dies too often, and whatever ends a life that is no death."""
    for _ in range(MOST_LIVES):
        failed: BaseException | None = None
        try:
            await clock.run(architecture(scenario.task, workbench))
        except (Exception, Crashed, BaseExceptionGroup) as error:
            failed = error
        if not acting.process.ended():
            if failed:
                raise failed
            return
        workbench.crashed(acting.last_crash)
        acting.process.restart()
    raise GaveUp(("the agent",), f"died {MOST_LIVES} times")


def _ended_by(error: Exception, log: TrialLog) -> Ending:
    """The outcome that an exception comes to. Of several that came together the first one tells, one that no trial foresees
    before all others. Raises ResultsError: a response could not be kept, and going on would ask for what nobody remembers."""
    match error:
        case ExceptionGroup():
            return min((_ended_by(inner, log) for inner in error.exceptions), key=lambda ending: ending.outcome != "error")
        case GaveUp():
            return Ending("gave_up", str(error))
        case Ungraded():
            return Ending("ungraded", str(error))
        case CallFailed():
            return Ending("error", f"{error.kind}: {error.detail}", failure=error)
        case Unguarded() | CannotStart():
            return Ending("error", str(error))
        case ResultsError():
            raise error
        case _:
            return _bug(error, log)


def _bug(bug: Exception, log: TrialLog) -> Ending:
    """A bug, with its place: the file and line where it was raised, and what the model had been asked for last."""
    asked = next((event.subtasks for event in reversed(log.events) if isinstance(event, Called)), ())
    where = ", ".join(filter(None, (place_of(bug), f"after a call for {' + '.join(asked)}" if asked else "before any call")))
    whole = "".join(traceback.format_exception(bug))
    return Ending("error", f"{type(bug).__name__}: {bug} ({where})", traceback=whole)
