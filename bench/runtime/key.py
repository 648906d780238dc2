"""Where in an experiment a trial stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TrialKey:
    """All that a trial's draws and its models' seeds depend on, and the arm, on which they never depend.

    `instance` is "" for the sole instance of a pack. `task` is the scenario under whose name is drawn, where that is another.
    """

    seed: int
    scenario: str
    repetition: int
    arm: str = ""
    instance: str = ""
    task: str = ""

    @property
    def drawn_from(self) -> tuple[object, ...]:
        """What a draw of this trial begins with. The sole instance of a pack leaves no trace in it, so that the draws of a pack
        are what they were before it had instances."""
        task = self.task or self.scenario
        where = (task, self.instance) if self.instance else (task,)
        return (self.seed, *where, self.repetition)
