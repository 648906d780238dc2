"""The accounts of attempts: one account for each state of the world in which judgments are asked for.

The same judgment in another state is another question: its attempts are counted separately. A task without a world has one
state.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.run.trial.causes import Causes


class Cases:
    """The accounts of attempts by state of the world. `life` is the number of the agent's process, from 1."""

    def __init__(self, new_account: Callable[[], Causes]):
        self._new_account = new_account
        self._by_case = {"": new_account()}
        self.life = 1

    def of(self, case: str) -> Causes:
        """Return the account of a state of the world; "" is the state of a task without a world."""
        if case not in self._by_case:
            self._by_case[case] = self._new_account()
            self._by_case[case].state = case
            self._by_case[case].life = self.life
        return self._by_case[case]

    def note_crash(self, event: int) -> None:
        """Note that the agent's process died. Its calls before this event are lost in every account."""
        self.life += 1
        for causes in self._by_case.values():
            causes.note_crash(event)
