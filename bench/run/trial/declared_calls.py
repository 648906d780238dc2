"""The calls that come over an endpoint, on virtual time. Nobody sees when a framework in a thread or another process has
nothing more to ask. So it declares how many calls it makes together, and makes one at a time if it declares nothing.

Calls made together begin when the last of them has come, in an order that does not depend on their arrival, and are answered
when the last of them is done. So a run depends neither on which thread was quicker nor on when it continues. Each call still
has its own seconds. Undeclared calls are refused, because their seconds would be a guess.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.common.errors import UndeclaredCalls

GLANCE = 0.003
"""Real seconds in which the first undeclared call waits for a second one, which is then refused: never part of a result."""
PATIENCE = 30.0
"""Real seconds to wait for declared calls that do not come."""
REMEDY = (
    "on simulated or recorded seconds, declare N calls made together by endpoint.expect(N) or by the header X-Bench-Parallel: N"
    " on each of them, or use a live model"
)


class DeclaredCalls:
    """The declared calls. `_missing` of them have not come; time does not pass without them."""

    def __init__(self) -> None:
        self._missing = 0
        self._in_flight = 0
        self._declared = False
        self._come: list[tuple[object, asyncio.Future[None]]] = []
        self._all_done = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._glanced = False
        self._refusal = ""

    def expect(self, calls: int) -> None:
        """Declare that the next `calls` calls are made together, and none follows before all of them are answered."""
        if calls < 1:
            raise ValueError(f"expect({calls}): at least one call is made")
        if self._in_flight:
            raise UndeclaredCalls(f"calls were declared while one was in flight, too late to say when they began; {REMEDY}")
        self._missing, self._declared = calls, True

    @asynccontextmanager
    async def arrival(self, what: object, together: int | None, again: bool) -> AsyncIterator[None]:
        """Count a call over the endpoint as in flight. `what` it asks orders it among the calls made together, `together` is
        how many it says these are.

        A failed call that is made `again` needs no declaration: its time is the client's real back-off. Raises UndeclaredCalls.
        """
        self._admit(together, again)
        all_done = self._all_done
        self._in_flight += 1
        try:
            if self._declared and not again:
                await self._begin(what)
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight and not self._missing:
                all_done.set()
        await all_done.wait()

    def holds(self) -> bool:
        """Return whether time has to wait for a call. Asked when the loop is idle."""
        return bool(self._missing) or (bool(self._in_flight) and not self._declared and not self._glanced)

    def wait(self) -> bool:
        """Wait for that call, for a limited real time. Returns whether the wait begins only now."""
        if self._timer:
            return False
        seconds, then = (PATIENCE, self._refuse) if self._missing else (GLANCE, self._glance)
        self._timer = asyncio.get_running_loop().call_later(seconds, then)
        return True

    def check(self) -> None:
        """Raise UndeclaredCalls if declared calls never came."""
        if self._refusal:
            raise UndeclaredCalls(self._refusal)

    def _admit(self, together: int | None, again: bool) -> None:
        if not self._in_flight and not self._missing:
            self._declared = together is not None and not again
            self._missing = 0 if again else together or 1
        elif not self._missing and not again:
            raise UndeclaredCalls(f"a call came over the endpoint while another one was in flight, undeclared; {REMEDY}")
        self._missing -= not again
        self._stop_waiting()
        if self._all_done.is_set():
            self._all_done = asyncio.Event()

    async def _begin(self, what: object) -> None:
        """Return when all calls made together have come, to one call after another."""
        loop = asyncio.get_running_loop()
        come = (what, loop.create_future())
        self._come.append(come)
        if not self._missing:
            loop.call_soon(self._let_go)
        else:
            self.wait()
        try:
            await come[1]
        except asyncio.CancelledError:  # its client went away
            self._missing += bool(self._missing)
            raise

    def _let_go(self) -> None:
        come, self._come = sorted(self._come, key=lambda request: repr(request[0])), []
        for _, begun in come:
            if not begun.done():
                begun.set_result(None)

    def _refuse(self) -> None:
        """Refuse the waiting calls, so that a wrong declaration blocks nobody."""
        self._refusal = f"{self._missing} of the calls that were declared did not come within {PATIENCE:g} s; {REMEDY}"
        self._timer, self._missing = None, 0
        come, self._come = self._come, []
        for _, begun in come:
            if not begun.done():
                begun.set_exception(UndeclaredCalls(self._refusal))

    def _stop_waiting(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer, self._glanced = None, False

    def _glance(self) -> None:
        self._timer, self._glanced = None, True
