"""The key of a trial, from its spec or from its record: the same draws in both."""

from __future__ import annotations

from typing import Protocol

from bench.record.equivalents import task_of
from bench.run.trial.key import TrialKey


class Placed(Protocol):
    """A trial, by its place in its experiment."""

    @property
    def scenario(self) -> str: ...
    @property
    def instance(self) -> str: ...
    @property
    def repetition(self) -> int: ...
    @property
    def arm(self) -> str: ...


def key_of(seed: int, trial: Placed) -> TrialKey:
    """Return a trial's key. An equivalent of a task has the task's draws, but its own responses."""
    return TrialKey(seed, trial.scenario, trial.repetition, trial.arm, trial.instance, task_of(trial.scenario))
