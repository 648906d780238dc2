"""The calls whose response the gateway holds back, and how each client stops waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from bench.probe.run.gateway.gate import CallGate, LiveCall, WaitEnd
from bench.wire.json_rpc import key_of


class HeldAnswers:
    """The calls whose response is held back until their clients stop waiting. The gate gets a note on how each wait ends.

    Args:
        gate: Returns the gate of the current cell.
    """

    def __init__(self, gate: Callable[[], CallGate]) -> None:
        self._gate = gate
        self._wait_ends = dict[LiveCall, tuple[CallGate, asyncio.Future[WaitEnd]]]()

    def __iter__(self) -> Iterator[LiveCall]:
        return iter(list(self._wait_ends))

    def __len__(self) -> int:
        return len(self._wait_ends)

    async def wait(
        self, call: LiveCall, disconnection: Coroutine[Any, Any, object] | None = None, known_end: WaitEnd | None = None
    ) -> WaitEnd:
        """Wait until a client stops waiting, and return how it stopped; "waits_longer" after `patience`.

        Args:
            call: The call whose response is held back.
            disconnection: Returns once the client has disconnected.
            known_end: How the wait has ended already, if it has.
        """
        gate, wait_end = self._gate(), asyncio.get_running_loop().create_future()
        self._wait_ends[call] = gate, wait_end
        watchers = [asyncio.ensure_future(disconnection)] if disconnection else []
        try:
            if known_end:
                self.end(call, known_end)
            await asyncio.wait({wait_end, *watchers}, timeout=gate.patience, return_when=asyncio.FIRST_COMPLETED)
            # this does nothing if the wait has ended in another way
            self.end(call, "disconnected" if any(watcher.done() for watcher in watchers) else "waits_longer")
            how: WaitEnd = wait_end.result()
            return how
        finally:
            self._wait_ends.pop(call, None)
            for watcher in watchers:
                watcher.cancel()

    def end(self, call: LiveCall, how: WaitEnd) -> None:
        """End the wait for a call, if a client waits for it."""
        if call in self._wait_ends:
            gate, wait_end = self._wait_ends.pop(call)
            call.door_state["went"] = how
            gate.note_wait_end(call, how)
            wait_end.set_result(how)

    def end_repeated(self, call: LiveCall) -> None:
        """End the waits for earlier calls with the same tool and arguments as this call."""
        for earlier in self:
            if (call.tool, key_of(call.arguments)) == (earlier.tool, key_of(earlier.arguments)):
                self.end(earlier, "asked_again")
