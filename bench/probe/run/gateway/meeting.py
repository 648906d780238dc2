"""Two processes of the agent that run at the same time make their calls at the same time."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Meeting:
    """Holds a call of one of two processes until the other process makes the same call. Both have then looked at the data, and
    neither has seen the other's effect.

    Args:
        timeout_s: Seconds after which a call passes although the other process did not make it.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s, self.is_on = timeout_s, False
        self._calls_of_first_process = dict[str, asyncio.Event]()
        """The identity of a call that one process has made -> set once the other process makes it too."""

    async def attend(self, identity: str) -> None:
        """Wait until the other process makes the call with this identity, has ended, or does not make it in time."""
        if second_call := self._calls_of_first_process.get(identity):
            second_call.set()
            return
        second_call = self._calls_of_first_process[identity] = asyncio.Event()
        with suppress(TimeoutError):
            await asyncio.wait_for(second_call.wait(), self._timeout_s)

    def end(self) -> None:
        """Expect no further call of a second process, and let the calls that wait for it pass."""
        self.is_on = False
        for second_call in self._calls_of_first_process.values():
            second_call.set()
