"""A workbench with all that belongs to it, without a trial around it: what is raised at it reaches the test."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from scripted_model import Line, ScriptedModel
from trials import TINY

from bench.record.events import Event
from bench.run.models.base import Model
from bench.run.trial.call import BackOff
from bench.run.trial.clock import TrialClock
from bench.run.trial.faults import Fault, FaultPlan
from bench.run.trial.key import TrialKey
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.run.trial.trial import Settings, Trial
from bench.run.trial.workbench import Workbench
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
