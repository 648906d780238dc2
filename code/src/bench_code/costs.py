"""Decides whether it is cheaper to run all tests unrecorded than to record those that must run.

Recording slows tests down, so a change that reaches most tests costs more than all tests do without it. What each test took is
stored with its results.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import median_low

from bench_code.record import UNRECORDED
from bench_code.store import Kept

TRIFLE = 1.0
"""Seconds. Where no more can be saved, tests are recorded."""
SLOWDOWN = 3.0
"""A test that never ran unrecorded is taken to be so many times as fast as it was while it was recorded."""
PATIENCE = 4
"""The number of unrecorded sessions after which tests are recorded anew, so that later sessions may keep results again. It
grows with the number of all unrecorded sessions, so where recording does not pay, it comes ever more seldom."""


class Costs:
    """What tests cost.

    Args:
        executions: The executions of tests so far, oldest first.
    """

    def __init__(self, executions: Sequence[Kept]):
        self._recorded = {each.name: each for each in executions if each.volatile != UNRECORDED}
        self._unrecorded = {each.name: each for each in executions if each.volatile == UNRECORDED}
        self._sessions = {each.step for each in executions if each.volatile == UNRECORDED}

    def recorded(self, names: Collection[str]) -> float:
        """Return the seconds that these tests are expected to take while they are recorded."""
        return sum(self._recorded[name].seconds for name in names if name in self._recorded)

    def unrecorded(self) -> float:
        """Return the seconds that all tests are expected to take unrecorded."""
        never = self._recorded.keys() - self._unrecorded.keys()
        return sum(each.seconds for each in self._unrecorded.values()) + self.recorded(never) / SLOWDOWN

    def is_cheaper_unrecorded(self, names: Collection[str]) -> bool:
        """Return whether all tests are expected to take less time unrecorded than these tests take while they are recorded."""
        if self.recorded(names) <= self.unrecorded() + TRIFLE:
            return False
        last = median_low(self._recorded[name].step for name in names if name in self._recorded)
        waited = sum(step > last for step in self._sessions)
        return waited < max(PATIENCE, len(self._sessions) - waited)
