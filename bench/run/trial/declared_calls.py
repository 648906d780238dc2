"""The calls that come over an endpoint while a trial runs on virtual time. A framework in a thread or another process declares
how many calls it makes together; without a declaration it makes one at a time, because nobody sees when it is idle.

Calls made together begin when the last of them has come, in an order that does not depend on their arrival, and are answered
when the last of them is done. So a run depends neither on which thread was quicker nor on when it continues. Each call still
has its own seconds. Undeclared calls are refused, because their seconds would be a guess.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.common.errors import UndeclaredCalls

UNDECLARED_WAIT_S = 0.003
"""Real seconds for which an undeclared call waits, so that a second call at the same time is noticed and refused. They are
never part of a result."""
DECLARED_WAIT_S = 30.0
"""Real seconds to wait for declared calls that do not come."""
REMEDY = (
    "on simulated or recorded seconds, declare N calls made together by endpoint.expect(N) or by the header X-Bench-Parallel: N"
    " on each of them, or use a live model"
)


class DeclaredCalls:
    """The calls that a framework declared. Virtual time does not pass while `_missing` of them have not arrived."""

    def __init__(self) -> None:
        self._missing = 0
        self._in_flight = 0
        self._declared = False
        self._arrived: list[tuple[object, asyncio.Future[None]]] = []
        self._all_done = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._has_waited = False
        self._refusal = ""

    def expect(self, calls: int) -> None:
        """Declare that the next `calls` calls are made together, and that no call follows before all of them are answered."""
        if calls < 1:
            raise ValueError(f"expect({calls}): at least one call is made")
        if self._in_flight:
            raise UndeclaredCalls(f"calls were declared while one was in flight, too late to say when they began; {REMEDY}")
        self._missing, self._declared = calls, True

    @asynccontextmanager
    async def endpoint_call(self, request: object, together: int | None, again: bool) -> AsyncIterator[None]:
        """Count a call over the endpoint as in flight. `request` orders the calls made together; `together` is their number, if
        the request says so.

        A failed call that is made `again` needs no declaration: its time is the client's real back-off. Raises UndeclaredCalls.
        """
        self._admit(together, again)
        all_done = self._all_done
        self._in_flight += 1
        try:
            if self._declared and not again:
                await self._begin(request)
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight and not self._missing:
                all_done.set()
        await all_done.wait()

    def must_wait(self) -> bool:
        """Return whether virtual time has to wait for a call. It is called when the event loop is idle."""
        return bool(self._missing) or (bool(self._in_flight) and not self._declared and not self._has_waited)

    def wait(self) -> bool:
        """Set a timer that ends the wait for a missing call. Return False if a timer was already set."""
        if self._timer:
            return False
        seconds, action = (DECLARED_WAIT_S, self._refuse) if self._missing else (UNDECLARED_WAIT_S, self._end_short_wait)
        self._timer = asyncio.get_running_loop().call_later(seconds, action)
        return True

    def check(self) -> None:
        """Raise UndeclaredCalls if declared calls never arrived."""
        if self._refusal:
            raise UndeclaredCalls(self._refusal)

    def _admit(self, together: int | None, again: bool) -> None:
        """Count a call that arrived over the endpoint. `together` is the declared number of calls that are made at the same
        time. Raises UndeclaredCalls for an undeclared call while another one is in flight."""
        if not self._in_flight and not self._missing:
            self._declared = together is not None and not again
            self._missing = 0 if again else together or 1
        elif not self._missing and not again:
            raise UndeclaredCalls(f"a call came over the endpoint while another one was in flight, undeclared; {REMEDY}")
        self._missing -= not again
        self._stop_waiting()
        if self._all_done.is_set():
            self._all_done = asyncio.Event()

    async def _begin(self, request: object) -> None:
        """Wait until all calls made together have arrived. These calls then begin one after another."""
        loop = asyncio.get_running_loop()
        start = loop.create_future()
        self._arrived.append((request, start))
        if not self._missing:
            loop.call_soon(self._start_all)
        else:
            self.wait()
        try:
            await start
        except asyncio.CancelledError:  # its client went away
            self._missing += bool(self._missing)
            raise

    def _start_all(self) -> None:
        """Let the arrived calls begin, in an order that does not depend on their arrival."""
        arrived, self._arrived = sorted(self._arrived, key=lambda arrival: repr(arrival[0])), []
        for _, start in arrived:
            if not start.done():
                start.set_result(None)

    def _refuse(self) -> None:
        """Refuse the waiting calls because declared calls did not arrive in time."""
        self._refusal = f"{self._missing} of the calls that were declared did not come within {DECLARED_WAIT_S:g} s; {REMEDY}"
        self._timer, self._missing = None, 0
        arrived, self._arrived = self._arrived, []
        for _, start in arrived:
            if not start.done():
                start.set_exception(UndeclaredCalls(self._refusal))

    def _stop_waiting(self) -> None:
        """Cancel the timer, since a call has arrived."""
        if self._timer:
            self._timer.cancel()
        self._timer, self._has_waited = None, False

    def _end_short_wait(self) -> None:
        """Note that no second undeclared call came in time."""
        self._timer, self._has_waited = None, True
