"""The gate of one endpoint limits the number of calls that can be in flight there.

The config sets the highest limit. A 429 halves the limit, and each round of answered calls raises it by one step (additive
increase, multiplicative decrease: Chiu and Jain, Computer Networks and ISDN Systems 17, 1989). If a 429 says when to come back,
no call enters before that. After FAILURES_BEFORE_PAUSE calls in a row that hung, were cut or failed at the endpoint, the gate
pauses until `resume` is called.

A wait at the gate is no call and no try of a call, and costs nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque

from bench.common.errors import CallFailed, CutOff, NoCompletion, RateLimited, ServerFailed, TimedOut, Unreachable
from bench.common.values import dataclass
from bench.run.models.base import Reply

ENDPOINT_FAILURES = (TimedOut, CutOff, ServerFailed, Unreachable, NoCompletion)
"""Failures that show that the endpoint does not work, whatever the request."""
FAILURES_BEFORE_PAUSE = 5
"""After so many ENDPOINT_FAILURES without a reply in between, the gate pauses."""
ROUNDS_TO_MAX = 10
"""Rounds of answered calls in which the limit would rise from 0 to its maximum."""


@dataclass
class Trouble:
    """How much an endpoint slowed the calls of a session.

    lowest   the lowest limit on calls in flight that was reached
    fell     how often a 429 halved the limit
    pauses   how often all calls were held back
    paused   the seconds for which all calls were held back
    """

    lowest: int
    fell: int = 0
    pauses: int = 0
    paused: float = 0.0


class Gate:
    """A limit on the calls in flight at one endpoint. Waiting calls enter in the order of their arrival.

    most      the highest limit
    watches   whether the limit follows the endpoint's answers; on virtual time it does not
    longest   the most seconds for which a 429 holds all calls back, whatever it asks for
    pausing   set while all calls are held back
    detail    the last failure's detail
    pauses    the number of pauses since the last answered call; whoever pauses the gate counts them
    """

    def __init__(self, most: int, *, watches: bool = False, longest: float = 60.0):
        self.most, self._watches, self._longest = most, watches, longest
        self._limit = float(most)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._holds = 0
        self._in_a_row = self.pauses = 0
        self._is_shut = False
        self.pausing = asyncio.Event()
        self.detail = ""
        self.trouble = Trouble(most)

    @property
    def limit(self) -> int:
        """The number of calls that can be in flight now."""
        return int(self._limit)

    @property
    def is_open(self) -> bool:
        """Whether a call can enter now without waiting."""
        return not self._waiting and self._has_room

    async def enter(self) -> int:
        """Wait until the limit allows one more concurrent call, and count the call. Return how often the limit had been
        halved."""
        if self.is_open:
            self._in_flight += 1
            return self.trouble.fell
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            self._forget(turn)
            raise
        return self.trouble.fell

    def leave(self) -> None:
        """Give the place in flight back, and admit waiting calls."""
        self._in_flight -= 1
        self._admit_waiting()

    def shut(self) -> None:
        """Stop admitting calls for good."""
        self._is_shut = True

    def resume(self) -> None:
        """Admit calls again after a pause: the endpoint answers."""
        self._in_a_row = 0
        self.pausing.clear()
        self._admit_waiting()

    def record_outcome(self, outcome: Reply | CallFailed, fell_before: int) -> None:
        """Record the outcome of a call, and adapt the limit: a reply raises it a little, a rate limit lowers it, and failures
        of the endpoint in a row ask for a pause. `fell_before` is how often the limit had been halved when the call entered."""
        if not self._watches or (isinstance(outcome, Reply) and outcome.reused):
            return
        if isinstance(outcome, Reply):
            self._in_a_row = self.pauses = 0
            self._limit = min(self.most, self._limit + max(1.0, self.most / ROUNDS_TO_MAX) / self._limit)
            self._admit_waiting()
        elif isinstance(outcome, RateLimited):
            self._slow_down(outcome, fell_before)
        elif isinstance(outcome, ENDPOINT_FAILURES) and not self.pausing.is_set():
            self._in_a_row += 1
            if self._in_a_row >= FAILURES_BEFORE_PAUSE:
                self.detail = outcome.detail
                self.trouble.pauses += 1
                self.pausing.set()

    def _slow_down(self, failure: RateLimited, fell_before: int) -> None:
        """Halve the limit after a 429, once for all calls that were in flight together."""
        if fell_before == self.trouble.fell:
            self._limit = max(1.0, self._limit / 2)
            self.trouble.fell += 1
            self.trouble.lowest = min(self.trouble.lowest, self.limit)
        if failure.retry_after:
            self._holds += 1
            asyncio.get_running_loop().call_later(min(failure.retry_after, self._longest), self._end_hold)

    def _end_hold(self) -> None:
        """End one wait that a 429 asked for."""
        self._holds -= 1
        self._admit_waiting()

    @property
    def _has_room(self) -> bool:
        return self._in_flight + 1 <= self._limit and not (self._is_shut or self._holds or self.pausing.is_set())

    def _admit_waiting(self) -> None:
        """Admit waiting calls as long as the limit allows."""
        while self._waiting and self._has_room:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def _forget(self, turn: asyncio.Future[None]) -> None:
        """Remove a waiting call whose client went away. If the call had just got its place, give the place back."""
        if turn.cancelled():
            if turn in self._waiting:
                self._waiting.remove(turn)
            return
        self.leave()
