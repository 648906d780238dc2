"""A fault plan in a config. Its effects must exist, and must be able to strike at the given points."""

from __future__ import annotations

from pydantic import model_validator

from bench.common.bounds import Many
from bench.record.plan_entries import EVERY, FaultEntry, PlanEntry
from bench.run.trial.effects import EFFECTS, points_of


class WrittenFault(FaultEntry):
    __doc__ = FaultEntry.__doc__

    @model_validator(mode="after")
    def _require_known(self) -> WrittenFault:
        """Raise ValueError for an unknown effect, for a point at which the effect cannot strike, or for settings that
        contradict one another."""
        points = points_of(self.effect)
        if not points:
            raise ValueError(EFFECTS.unknown(self.effect))
        if self.point not in points:
            raise ValueError(f"effect '{self.effect}' cannot strike at '{self.point}', only at {', '.join(sorted(points))}")
        if bool(self.attempts) == bool(self.probability):
            raise ValueError('a fault has one trigger: either attempts = [1, ...] or "every", or a probability above 0')
        if self.position and self.subtask != EVERY:
            raise ValueError("a fault strikes a subtask or a position: give one of the two")
        if self.point == "process" and not EFFECTS[self.effect, self.point].on and self.tool is not None:
            raise ValueError(f"{self.effect} strikes no tool; its attempts count the replies of the model in a trial")
        if self.target_key != "subtask" and (self.subtask != EVERY or self.position):
            raise ValueError(f"at '{self.point}' a fault strikes no subtask; name the {self.target_key}")
        for key in {"tool", "event"} - {self.target_key}:
            if getattr(self, key) is not None:
                raise ValueError(f"at '{self.point}' a fault strikes no {key}; name the {self.target_key}")
        return self


class WrittenPlan(PlanEntry):
    __doc__ = PlanEntry.__doc__

    faults: Many[WrittenFault] = ()
    """Its faults. A text gets at most one fault: if several are due for the same text, the plan's first fault strikes."""
