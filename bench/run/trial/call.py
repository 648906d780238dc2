"""One call: its purpose, its tries, and the outcome of each."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import field, replace

from bench.common.errors import CallFailed, TimedOut, Unreachable
from bench.common.values import dataclass
from bench.record.tool_calls import ToolCall
from bench.run.models.base import Reply, Request, Response, Usage
from bench.run.trial.causes import CallPurpose
from bench.run.trial.clock import Span
from bench.run.trial.faults import OpenReceipt
from bench.run.trial.slots import Slot


@dataclass(frozen=True)
class Received:
    """A reply as the architecture gets it, and the faults that it carries. `undamaged` is its text before output faults, None
    if none changed it. `extra` holds the provider's other fields."""

    call: int
    text: str
    finish: str
    receipts: tuple[OpenReceipt, ...] = ()
    usage: Usage | None = None
    undamaged: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    extra: str = ""

    def with_receipts(self, earlier: Sequence[OpenReceipt]) -> Received:
        """Return the reply with further faults that it carries."""
        return replace(self, receipts=(*earlier, *self.receipts))


@dataclass(frozen=True)
class Lost:
    """No usable reply came. `event` is the number of the call's event."""

    failure: CallFailed
    event: int


@dataclass(frozen=True)
class BackOff:
    """How failed calls are made again: at most `tries` requests, after `base` seconds, doubled each time up to `most`.

    A server's Retry-After replaces the doubled time, but the wait never exceeds `most`.
    """

    tries: int = 6
    base: float = 1.0
    most: float = 60.0

    def seconds(self, failed: int, retry_after: float | None) -> float:
        """Return how long to wait after `failed` failures in a row."""
        doubled: float = self.base * 2.0 ** (failed - 1)
        return min(doubled if retry_after is None else max(retry_after, 0.0), self.most)


@dataclass
class CallAttempt:
    """One request and its outcome. Only its faults' delays and the model's time count as time in flight.

    begun     whether it had its slot at the endpoint
    slot      its place in flight at the endpoint, free or waited for
    asked     whether it reached the model; a fault can keep it from being sent, or answer in the model's place
    reply     the reply, or what the model wrote before the connection was cut
    responses   the model's responses, to be passed on once they are counted
    failure   why it failed; None if a reply came
    """

    call: int
    try_: int
    ask: CallPurpose
    request: Request
    begun: bool = False
    asked: bool = False
    reply: Reply | None = None
    failure: CallFailed | None = None
    receipts: list[OpenReceipt] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    started: int = 0
    delays: list[Span] = field(default_factory=list)
    at_model: Span | None = None
    slot: Slot | None = None

    @property
    def delay(self) -> int:
        return sum([span.length for span in self.delays])

    @property
    def length(self) -> int:
        return self.delay + (self.at_model.length if self.at_model else 0)

    @property
    def client(self) -> int:
        """The time that this process spent on the call, in nanoseconds, besides the flight."""
        return self.at_model.client if self.at_model else 0

    @property
    def in_flight_since(self) -> int:
        """The begin of the flight: a busy process sends a request later than it means to."""
        sent = self.at_model
        return max(self.started, sent.started - self.delay) if sent and sent.client else self.started

    def abandon(self) -> CallFailed:
        """Return the failure of a call whose client went away. If it had begun, it is paid all the same."""
        gone = "the client went away before a reply came"
        partial = self.reply.text if self.reply else ""
        failure = TimedOut(gone, partial=partial) if self.begun else Unreachable(f"{gone}, while the call waited for a slot")
        self.failure = failure
        return failure


def after(lost: Lost, ask: CallPurpose) -> CallPurpose:
    """Return the next try of a call whose reply was lost. An unpaid refusal costs no tokens twice, and so is no cause."""
    return replace(ask, cause="retry", caused_by=lost.event, inferred=False) if lost.failure.paid else ask


async def flown(reply: Awaitable[Reply], span: Span) -> Reply:
    """Await a model's reply; `span` gets its flight, if the model tells. Raises what the model raised."""
    try:
        came = await reply
    except CallFailed as failure:
        span.flight = failure.flight
        raise
    span.flight = came.flight
    return came
