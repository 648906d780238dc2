"""Knows what sessions of tests cost here, and whether it is cheaper to run all tests unrecorded.

Recording slows tests down, so a change that reaches most tests costs more than running all of them without it. What recorded
tests took is stored with their results. What all tests take unrecorded is measured by the first session that runs so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

TRIFLE = 1.0
"""Seconds. Where no more can be saved, nothing is decided and nothing is said."""
SLOWDOWN = 3.0
"""As long as all tests have never run unrecorded, they are taken to be so many times as fast as recorded tests."""
LATEST = 5
"""The number of sessions over which costs are compared."""
PATIENCE = 4
"""The number of unrecorded sessions after which tests are recorded anew, so that later sessions may keep results again. It
doubles whenever such a recording has not paid."""


class SessionCost(NamedTuple):
    """What a session took.

    recorded  whether it ran what was invalid, and recorded it; else it ran all tests, and recorded none
    seconds   its wall seconds, without the start of Python
    in_tests  those of them that passed within tests
    """

    recorded: bool
    seconds: float
    in_tests: float


class Costs:
    """The costs of the sessions of one layout and one choice of tests.

    Args:
        sessions: The sessions so far, oldest first.
        tests: For each test that was recorded, the seconds that it took.
    """

    def __init__(self, sessions: Sequence[SessionCost], tests: dict[str, float]):
        self._recorded = [each for each in sessions if each.recorded]
        self._unrecorded = [each for each in sessions if not each.recorded]
        self._tests, self._is_due = tests, _is_due(sessions)

    def expected(self, invalid: Sequence[str]) -> float:
        """Return the seconds that these tests are expected to take while they are recorded."""
        return sum(self._tests.get(name, 0.0) for name in invalid)

    def is_dearer(self, invalid: Sequence[str]) -> bool:
        """Return whether these tests are expected to take longer while they are recorded than all tests unrecorded."""
        whole = self._unrecorded[-1].in_tests if self._unrecorded else sum(self._tests.values()) / SLOWDOWN
        return not self._is_due and self.expected(invalid) > whole + TRIFLE

    def verdict(self) -> str:
        """Return a sentence that compares the latest recorded sessions with running all tests; "" if too little is known."""
        latest = [each.seconds for each in self._recorded[1:]][-LATEST:]
        if not self._unrecorded or len(latest) < LATEST:
            return ""
        whole = LATEST * self._unrecorded[-1].seconds
        beside = f"the last {LATEST} recorded sessions took {sum(latest):.1f} s, and all tests unrecorded {whole:.1f} s"
        return beside if sum(latest) <= whole else f"{beside}: plain pytest is cheaper here"


def _is_due(sessions: Sequence[SessionCost]) -> bool:
    """Return whether so many sessions ran unrecorded that tests are recorded anew, although that costs more."""
    whole, waited, patience = 0.0, 0, PATIENCE
    for each in sessions:
        if not each.recorded:
            whole, waited = each.seconds, waited + 1
        else:
            patience = 2 * patience if waited >= patience else PATIENCE if each.seconds <= whole else patience
            waited = 0
    return waited >= patience
