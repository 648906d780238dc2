"""The key of a trial, made from its spec or from its record. Both give the same random draws."""

from __future__ import annotations

from typing import Protocol

from bench.record.equivalents import task_of
from bench.run.trial.key import TrialKey


class KeyedTrial(Protocol):
    """A trial's spec or record, with what its key is made of."""

    @property
    def scenario(self) -> str: ...
    @property
    def instance(self) -> str: ...
    @property
    def repetition(self) -> int: ...
    @property
    def arm(self) -> str: ...


def key_of(seed: int, trial: KeyedTrial) -> TrialKey:
    """Return a trial's key. A task that is equivalent to another task has that task's draws, but responses of its own."""
    return TrialKey(seed, trial.scenario, trial.repetition, trial.arm, trial.instance, task_of(trial.scenario))
