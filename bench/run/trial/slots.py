"""Count the calls of one trial that wait for a slot at an endpoint, and the calls in flight."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.common.errors import CallFailed
from bench.run.models.base import Reply, Request
from bench.run.trial.gate import Gate


def unbounded_gates() -> Callable[[Request], Gate]:
    """Return a function that returns the same unlimited gate for all requests."""
    gate = Gate(sys.maxsize)
    return lambda _: gate


class Slots:
    """The calls of one trial that wait or are in flight. `gate_of` returns the gate of the endpoint that answers a request.
    `changed` is called when one of the two numbers changes."""

    def __init__(self, gate_of: Callable[[Request], Gate] | None = None):
        self._gate_of = gate_of or unbounded_gates()
        self._waiting = self.in_flight = 0
        self.changed: Callable[[], object] = lambda: None

    @property
    def is_waiting(self) -> bool:
        """Whether the trial has no call in flight, and a call waits for a slot or a back-off."""
        return self._waiting > 0 and not self.in_flight

    def slot(self, request: Request) -> Slot:
        return Slot(self._gate_of(request), self)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a call as waiting while the block runs."""
        self.count(waiting=1)
        try:
            yield
        finally:
            self.count(waiting=-1)

    def count(self, *, waiting: int = 0, in_flight: int = 0) -> None:
        """Add to the numbers of calls that wait and that are in flight."""
        self._waiting += waiting
        self.in_flight += in_flight
        self.changed()


class Slot:
    """The place of one call among the calls in flight."""

    def __init__(self, gate: Gate, slots: Slots):
        self._gate, self._slots = gate, slots
        self._halvings_at_entry = 0
        """How often the gate's limit had been halved when the call entered."""

    @property
    def is_free(self) -> bool:
        return self._gate.is_open

    async def take(self) -> None:
        """Wait for the slot and take it."""
        self._halvings_at_entry = await self._gate.enter()
        self._slots.count(in_flight=1)

    def leave(self) -> None:
        self._slots.count(in_flight=-1)
        self._gate.leave()

    def report_outcome(self, outcome: Reply | CallFailed) -> None:
        """Report the outcome of this call to the gate."""
        self._gate.record_outcome(outcome, self._halvings_at_entry)
