"""A workbench with all that belongs to it, without a trial around it: what is raised at it reaches the test."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from scripted_model import Line, ScriptedModel
from trials import TINY

from bench.models.base import Model
from bench.runtime.call import BackOff
from bench.runtime.clock import TrialClock
from bench.runtime.events import Event
from bench.runtime.faults import Fault, FaultPlan
from bench.runtime.key import TrialKey
from bench.runtime.loop import run
from bench.runtime.slots import Slots
from bench.runtime.trial import Settings, Trial
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
        self.scenario, self.model = scenario, model or ScriptedModel(scenario.reference, script)
        self.trial = Trial(
            scenario,
            self.model,
            FaultPlan("plan", tuple(faults)),
            TrialKey(1, scenario.name, 1, instance=scenario.instance),
            settings or Settings(),
            slots=Slots(),
            back_off=BackOff(),
            clock=TrialClock(virtual=True),
        )
        self.log, self.clock, self.schedule, self.caller = (
            self.trial.log,
            self.trial.clock,
            self.trial.schedule,
            self.trial.caller,
        )
        self.workbench = Workbench(self.trial)

    @property
    def events(self) -> list[Event]:
        return self.log.events

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Await this on the trial's clock."""
        return run(self.clock.run(work))
