"""The calls of one trial on their way to the endpoints: those that wait, and those in flight."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.common.errors import CallFailed
from bench.run.models.base import Reply, Request
from bench.run.trial.gate import Gate


def unbounded_gates() -> Callable[[Request], Gate]:
    """Return a function that finds one unlimited gate for all requests."""
    gate = Gate(sys.maxsize)
    return lambda _: gate


class Slots:
    """The slots of one trial. `gate_of` finds the gate of the endpoint that answers a request. `changed` is called when a call
    begins or ends to wait, or to be in flight."""

    def __init__(self, gate_of: Callable[[Request], Gate] | None = None):
        self._gate_of = gate_of or unbounded_gates()
        self._waiting = self.in_flight = 0
        self.changed: Callable[[], object] = lambda: None

    @property
    def is_waiting(self) -> bool:
        """Whether the trial waits, for a slot or a back-off, and has nothing in flight."""
        return self._waiting > 0 and not self.in_flight

    def slot(self, request: Request) -> Slot:
        return Slot(self._gate_of(request), self)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a call as waiting, for a slot or a back-off, while the block runs."""
        self.count(waiting=1)
        try:
            yield
        finally:
            self.count(waiting=-1)

    def count(self, *, waiting: int = 0, in_flight: int = 0) -> None:
        """Change the numbers of calls that wait and that are in flight."""
        self._waiting += waiting
        self.in_flight += in_flight
        self.changed()


class Slot:
    """One call's place in flight."""

    def __init__(self, gate: Gate, slots: Slots):
        self._gate, self._slots = gate, slots
        self._entered = 0

    @property
    def is_free(self) -> bool:
        return self._gate.is_open

    async def take(self) -> None:
        self._entered = await self._gate.enter()
        self._slots.count(in_flight=1)

    def leave(self) -> None:
        self._slots.count(in_flight=-1)
        self._gate.leave()

    def saw(self, outcome: Reply | CallFailed) -> None:
        """Tell the gate what the model did on this call."""
        self._gate.saw(outcome, self._entered)
