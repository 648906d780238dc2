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
    """The reply to a call after the faults that struck it. `receipts` names these faults. `undamaged` is the reply's text
    before faults at point `output`; None if no fault changed the text. `extra` holds the provider's other fields."""

    call: int
    text: str
    finish: str
    receipts: tuple[OpenReceipt, ...] = ()
    usage: Usage | None = None
    undamaged: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    extra: str = ""

    def with_receipts(self, earlier: Sequence[OpenReceipt]) -> Received:
        """Return this reply with the receipts of earlier faults, such as faults in its inputs."""
        return replace(self, receipts=(*earlier, *self.receipts))


@dataclass(frozen=True)
class Lost:
    """A call without a usable reply. `event` is the number of the call's event."""

    failure: CallFailed
    event: int


@dataclass(frozen=True)
class BackOff:
    """The retries of a failed call: at most `tries` requests. The first wait is `base` seconds, each further wait is twice as
    long. A server's Retry-After replaces the doubled time. No wait exceeds `most` seconds."""

    tries: int = 6
    base: float = 1.0
    most: float = 60.0

    def seconds(self, failures: int, retry_after: float | None) -> float:
        """Return the seconds to wait after `failures` failures in a row."""
        doubled: float = self.base * 2.0 ** (failures - 1)
        return min(doubled if retry_after is None else max(retry_after, 0.0), self.most)


@dataclass
class CallAttempt:
    """One request of a call and its outcome. The time in flight is the delays of its faults plus the model's time.

    begun       whether the request got its slot at the endpoint
    slot        its slot among the calls in flight at the endpoint
    asked       whether it reached the model; a fault can keep it from being sent, or answer in the model's place
    reply       the reply, or what the model wrote before the connection was cut
    responses   the model's responses, to be passed on once their tokens are counted
    failure     why the call failed; None if a reply came
    """

    call: int
    try_: int
    purpose: CallPurpose
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
        """The nanoseconds by which faults delayed the call."""
        return sum([span.length for span in self.delays])

    @property
    def length(self) -> int:
        """The nanoseconds in flight."""
        return self.delay + (self.at_model.length if self.at_model else 0)

    @property
    def client(self) -> int:
        """The time in nanoseconds that this process spent on the call outside of the flight."""
        return self.at_model.client if self.at_model else 0

    @property
    def in_flight_since(self) -> int:
        """The start of the flight in nanoseconds. A busy process sends a request later than the recorded start of the call."""
        flight = self.at_model
        return max(self.started, flight.started - self.delay) if flight and flight.client else self.started

    def abandon(self) -> CallFailed:
        """Fail the call because its client went away, and return the failure. A call that had got its slot counts as paid."""
        why = "the client went away before a reply came"
        partial = self.reply.text if self.reply else ""
        failure = TimedOut(why, partial=partial) if self.begun else Unreachable(f"{why}, while the call waited for a slot")
        self.failure = failure
        return failure


def purpose_after_loss(lost: Lost, purpose: CallPurpose) -> CallPurpose:
    """Return the purpose of the next try after a lost reply. The next try is a retry if the lost reply was paid; else the
    purpose stays the same."""
    return replace(purpose, cause="retry", caused_by=lost.event, inferred=False) if lost.failure.paid else purpose


async def await_flight(pending_reply: Awaitable[Reply], span: Span) -> Reply:
    """Await a model's reply, and set `span.flight` to its time in flight, if the model measured that. Raises what the model
    raised."""
    try:
        reply = await pending_reply
    except CallFailed as failure:
        span.flight = failure.flight
        raise
    span.flight = reply.flight
    return reply
