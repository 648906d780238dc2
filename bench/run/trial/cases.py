"""The accounts of attempts: one for each state of the world in which judgments are asked.

The same judgment in another state is another question: its attempts are counted separately. A task without a world has one
state.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.run.trial.causes import Causes


class Cases:
    def __init__(self, make: Callable[[], Causes]):
        self._make = make
        self._of = {"": make()}
        self.life = 1

    def of(self, case: str) -> Causes:
        if case not in self._of:
            self._of[case] = self._make()
            self._of[case].state = case
            self._of[case].life = self.life
        return self._of[case]

    def crashed(self, event: int) -> None:
        """Note that this event, the process's death, lost all that was asked before."""
        self.life += 1
        for causes in self._of.values():
            causes.crashed(event)
