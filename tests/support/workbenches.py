"""A workbench with all that belongs to it, without a trial around it: what is raised at it reaches the test."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from scripted_model import Line, ScriptedModel
from trials import TINY

from bench.models.base import Model
from bench.runtime.asking import Settings
from bench.runtime.call import BackOff
from bench.runtime.caller import Caller
from bench.runtime.clock import TrialClock
from bench.runtime.events import Event
from bench.runtime.faults import Fault, FaultPlan, FaultSchedule
from bench.runtime.injection import Injection
from bench.runtime.key import TrialKey
from bench.runtime.log import TrialLog
from bench.runtime.loop import run
from bench.runtime.slots import Slots
from bench.runtime.state import State
from bench.runtime.workbench import Workbench
from bench.scenario import Scenario

Result = TypeVar("Result")


class TrialParts:
    """The workbench of one trial of `scenario`, on a scripted model unless another is given."""

    def __init__(
        self,
        scenario: Scenario = TINY,
        faults: Sequence[Fault] = (),
        script: Mapping[str, Sequence[Line]] | None = None,
        model: Model | None = None,
        settings: Settings | None = None,
    ):
        self.scenario, self.log, self.clock = scenario, TrialLog(), TrialClock(virtual=True)
        key = TrialKey(1, scenario.name, 1, instance=scenario.instance)
        self.schedule = FaultSchedule(FaultPlan("plan", tuple(faults)), key, self.log.emit)
        self.model = model or ScriptedModel(scenario.reference, script)
        self.caller = Caller(self.model, self.clock, self.schedule, Slots(), BackOff(), self.log)
        state = State(scenario.task)
        injection = Injection(state, self.schedule, scenario.wrong_outputs)
        self.workbench = Workbench(state, key, settings or Settings(), self.caller, injection, self.log)

    @property
    def events(self) -> list[Event]:
        return self.log.events

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Await this on the trial's clock."""
        return run(self.clock.run(work))
