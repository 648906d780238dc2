"""One trial, from its spec to its record: the one join of scenario, architecture, model and faults, and the one place that
turns exceptions into outcomes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bench.architectures.registry import Architecture
from bench.errors import CallFailed, GaveUp, Ungraded, whole_text
from bench.experiment.matrix import Matrix, TrialSpec
from bench.experiment.record import Outcome, TrialRecord
from bench.runtime.caller import Caller, Slot
from bench.runtime.clock import TrialClock
from bench.runtime.events import Event, digest_of
from bench.runtime.faults import FaultSchedule
from bench.runtime.workbench import Place, Workbench
from bench.scenario import Answer, Grade, Scenario


@dataclass(frozen=True)
class TrialResult:
    """A record, the texts that its events name by digest, and the exception behind an infrastructure's error."""

    record: TrialRecord
    texts: dict[str, str]
    failure: CallFailed | None = None


UNFIT = Grade(False, 0.0, {}, "an output of the final answer does not fit its schema")
"""The grade of an answer that something corrupted after it had been verified."""


@dataclass
class Graders:
    """Grades answers in a thread of their own, equal answers once: a grade is a function of the answer alone."""

    _known: dict[tuple[str, str, str], Grade] = field(default_factory=dict)

    async def grade(self, scenario: Scenario, answer: Answer) -> Grade:
        said = "\0".join(f"{name}\0{output.model_dump_json()}" for name, output in answer.items())
        key = (scenario.name, scenario.digest, digest_of(said))
        if key not in self._known:
            self._known[key] = await asyncio.to_thread(scenario.grade, answer, scenario.truth)
        return self._known[key]


@dataclass(frozen=True)
class Ending:
    """How a trial ended. `failure` is the endpoint's, where it was that."""

    outcome: Outcome
    reason: str = ""
    grade: Grade | None = None
    failure: CallFailed | None = None


@dataclass
class Log:
    """The events of a trial, and the texts that they name by digest."""

    events: list[Event] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def keep(self, text: str) -> str:
        digest = digest_of(text)
        self.texts[digest] = text
        return digest


async def run_trial(spec: TrialSpec, matrix: Matrix, slot: Slot, graders: Graders) -> TrialResult:
    """Run one trial to its end. Raises nothing but cancellation: whatever goes wrong is an outcome."""
    scenario, model = matrix.scenarios[spec.scenario], matrix.models[spec.model]
    log, clock = Log(), TrialClock(model.timing != "live")
    place = Place(matrix.config.seed, spec.scenario, spec.repetition, spec.arm)
    schedule = FaultSchedule(spec.plan, place.seed, place.scenario, place.repetition, log.events.append)
    caller = Caller(model, clock, schedule, slot, matrix.back_off, log.events.append, log.keep)
    settings, emit, keep = matrix.settings[spec.architecture], log.events.append, log.keep
    workbench = Workbench(scenario.task, place, settings, caller, schedule, scenario.wrong_outputs, emit, keep, matrix.host)
    ending = await _ending(matrix.architectures[spec.architecture], scenario, clock, workbench, graders)
    workbench.close(answered=ending.grade is not None)
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
    )
    return TrialResult(record, log.texts, ending.failure)


async def _ending(
    architecture: Architecture, scenario: Scenario, clock: TrialClock, workbench: Workbench, graders: Graders
) -> Ending:
    """Let the architecture work, have its answer graded, and turn whatever was raised into an outcome."""
    try:
        await clock.run(architecture(scenario.task, workbench))
        answer = workbench.answer()
        grade = await graders.grade(scenario, answer) if answer else UNFIT
    except GaveUp as gave_up:
        return Ending("gave_up", str(gave_up))
    except Ungraded as ended:
        return Ending("ungraded", str(ended))
    except CallFailed as failure:
        return Ending("error", f"{failure.kind}: {failure.detail}", failure=failure)
    except Exception as bug:
        return Ending("error", f"{type(bug).__name__}: {bug}")
    return Ending("solved" if grade.correct else "wrong", grade=grade)
