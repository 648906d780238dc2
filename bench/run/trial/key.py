"""A trial's place in an experiment."""

from __future__ import annotations

from bench.common.values import dataclass, kept


@dataclass(frozen=True)
class TrialKey:
    """The values that a trial's random draws and its models' seeds depend on, and the arm, on which they never depend.
    `instance` is "" for the only instance of a pack. `task` is the scenario whose name the draws depend on; "" stands for
    `scenario`."""

    seed: int
    scenario: str
    repetition: int
    arm: str = ""
    instance: str = ""
    task: str = ""

    @kept
    def drawn_from(self) -> tuple[object, ...]:
        """Return the first parts of the key of each random draw in this trial. The only instance of a pack is left out, so that
        its draws are the same as before packs had instances."""
        task = self.task or self.scenario
        where = (task, self.instance) if self.instance else (task,)
        return (self.seed, *where, self.repetition)
