"""The calls in flight, and the readings of the stores around them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bench.probe.run.gateway.gate import LiveCall
from bench.probe.run.gateway.journal import Journal

MIN_HOLD_S = 0.2
"""A call that is held for a shorter time counts as not given up if it is repeated: equal calls can be made at the same time."""


class Flight:
    """The calls in flight: forwarded, and without a response.

    Args:
        journal: The readings of the stores are written here.
        patience: Seconds that a call waits for its turn.
        one_by_one: Whether calls are forwarded one at a time.
        reads_before: Whether the stores are read before a call that is in flight alone.
        reads_after: Whether the stores are read after the last call in flight.
    """

    def __init__(
        self,
        journal: Journal,
        patience: float,
        *,
        one_by_one: bool,
        reads_before: Callable[[], bool],
        reads_after: Callable[[], bool],
    ) -> None:
        self._journal, self._patience, self._one_by_one = journal, patience, one_by_one
        self._reads_before, self._reads_after = reads_before, reads_after
        self._calls = dict[LiveCall, bool]()
        """The calls -> whether the call has acquired `_turn`."""
        self._turn, self._lock = asyncio.Semaphore(1), asyncio.Lock()
        self._has_last_call_read = True

    @property
    def calls(self) -> list[LiveCall]:
        """The calls in flight, in the order in which they were forwarded."""
        return list(self._calls)

    async def enter(self, call: LiveCall) -> None:
        """Wait until the call may pass, and count it as in flight. If no other call is in flight, read the stores before."""
        has_turn = self._one_by_one
        if has_turn:
            try:
                await asyncio.wait_for(self._turn.acquire(), self._patience)
            except TimeoutError:  # a call in flight needs this one to end
                has_turn = False
        async with self._lock:
            if not self._calls and self._reads_before():
                await self._journal.read_before_call(until_settled=self._one_by_one and not self._has_last_call_read)
            self._calls[call] = has_turn
            self._journal.note_in_flight(call)

    async def leave(self, call: LiveCall, *, is_struck: bool) -> None:
        """Count a call as no longer in flight. If no other call is in flight, read the stores: at once if all changes are this
        call's, since it ran alone or was struck; otherwise a task reads them, and the response need not wait."""
        async with self._lock:
            if call not in self._calls:
                return
            has_turn = self._calls.pop(call)
            self._has_last_call_read = bool(call.reads)
            if not self._calls and self._reads_after():
                if is_struck or (self._one_by_one and self._journal.settle <= MIN_HOLD_S):
                    await self._journal.read()
                else:
                    await self._journal.note_landed()
        if has_turn:
            self._turn.release()

    def clear(self) -> None:
        """Count no call as in flight: the calls ended with the agent's process."""
        for has_turn in self._calls.values():
            if has_turn:
                self._turn.release()
        self._calls.clear()
