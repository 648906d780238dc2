"""The decisions that a proxy of the gateway asks for at each call: whether the call is passed on, and which answer is given.

A door (stdio, HTTP, the model's) relays bytes and knows the wire forms. A gate decides, and never sees the wire. A door calls
`arrive`, then `answer`, then `note_given`, in this order for each call, and does what is returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import JsonValue

from bench.probe.points import AnswerFate, CallFate
from bench.wire.json_rpc import key_of

WaitEnd = Literal["disconnected", "cancelled", "asked_again", "waits_longer"]
"""How a client's wait for an answer ended, or that it did not end within `patience`."""


class Undelivered(Exception):
    """A held call was not answered by its server. The text gives the reason."""


@dataclass(eq=False)
class LiveCall:
    """One call at a proxy of the gateway, from its arrival on.

    number     its place in the journal, from 1
    kind       the kind of its door
    door       the name of the server or service as the owner's config has it; "model" for the model, "function" for functions;
               the name of a database's store
    tool       the MCP tool, `METHOD /path` of a service, the name of a function, the statements of a transaction, or the
               path of the model's API
    arguments  what it was called with, parsed: MCP arguments; query and body of a service; the body of a model's request
    reads      whether the tool claims to read: `readOnlyHint`, GET and HEAD; None if it claims nothing
    idempotent whether its method, or its server's claim, says that a repeated call does no more; `key` is its `Idempotency-Key`
    life       in which process of the agent, from 1
    struck     the gate will strike the answer, as it knows once the call has arrived: a stream is then held until it is whole.
               Otherwise its events pass as they come, and `answer` is awaited before the last of them
    wire       the id that the protocol gives it, as text; "" if it has none
    form       the wire form of the fault that strikes it
    instead    the bytes that `stale` and `answer` give
    taped      the answer's bytes if the call is played from a tape; it is then passed on to nobody
    answer     what the server answered, parsed; `failed` whether that is an error
    continues  the number of the call to which this request belongs (a session resumed, a task polled, input that was asked for)
    """

    number: int
    door: str
    kind: str
    tool: str
    arguments: JsonValue
    reads: bool | None = None
    idempotent: bool = False
    key: str = ""
    life: int = 1
    struck: bool = False
    wire: str = ""
    form: str = ""
    instead: bytes | None = None
    taped: bytes = b""
    answer: JsonValue = None
    failed: bool = False
    continues: int | None = None
    deliver: Callable[[], Awaitable[bytes]] | None = None
    """Delivers a held call without its client, sets `answer` and `failed`, and returns the answer's bytes; of a call that was
    answered before it sets nothing. Raises Undelivered."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its server has answered, or it is known that it never will."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What the door keeps with it."""


class CallGate:
    """Decides what happens to each call: this one lets each pass. The proxies call these methods in the given order. A method
    can wait, and can kill the agent."""

    patience = 0.0

    async def arrive(self, call: LiveCall) -> CallFate:
        del call
        return "pass"

    async def passes(self, call: LiveCall) -> None:
        """The door passes a held call on, since its client waits longer."""

    async def answer(self, call: LiveCall, answer: bytes) -> AnswerFate:
        """`call.answer` and `call.failed` are set. `answer` is what `call.instead` can give again: a service's whole answer
        with its head, an MCP server's message; b"" if it is too long to be kept."""
        del call, answer
        return "give"

    async def note_given(self, call: LiveCall) -> None:
        """The last byte of the answer was sent to the agent."""

    async def note_end(self, call: LiveCall) -> None:
        """The call has ended without an answer: its server broke the connection, or the agent left before the answer came.
        After this neither `answer` nor `note_given` is called."""

    def went(self, call: LiveCall, how: WaitEnd) -> None:
        """The client stopped waiting for a call that gets no answer, or it waited longer than `patience`."""

    def blocks(self, call: LiveCall) -> None:
        """Another session waits for what a held call has locked, so that nothing can look any more."""

    def notice(self, door: str, what: str) -> None:
        """A proxy saw something that belongs to no call: changed tools, a malformed message, a refused request."""


@dataclass(frozen=True)
class Desk:
    """The objects that all proxies of a gateway share: the gate of the current cell, the number of the next call, and the
    agent's life."""

    gate: Callable[[], CallGate]
    number: Callable[[], int]
    life: Callable[[], int]

    def call(self, door: str, kind: str, tool: str, arguments: JsonValue, **more: Any) -> LiveCall:
        """Return a call that has arrived; `more` are further fields of it."""
        return LiveCall(self.number(), door, kind, tool, arguments, life=self.life(), **more)


class HeldAnswers:
    """The calls that get no answer until their clients wait no more. The gate is told how each wait ends.

    Args:
        gate: Returns the gate of the current cell.
    """

    def __init__(self, gate: Callable[[], CallGate]) -> None:
        self._gate = gate
        self._waits = dict[LiveCall, tuple[CallGate, asyncio.Future[WaitEnd]]]()

    def __iter__(self) -> Iterator[LiveCall]:
        return iter(list(self._waits))

    def __len__(self) -> int:
        return len(self._waits)

    async def wait(
        self, call: LiveCall, leaves: Coroutine[Any, Any, object] | None = None, ended: WaitEnd | None = None
    ) -> WaitEnd:
        """Return how a client's wait ends: as `end` says, or "waits_longer" after `patience`.

        Args:
            call: What it waits for.
            leaves: Returns once the client has disconnected.
            ended: How the wait has ended already, if it has.
        """
        gate, waits, leaving = self._gate(), asyncio.get_running_loop().create_future(), list[asyncio.Future[object]]()
        self._waits[call] = gate, waits
        try:
            if ended:
                self.end(call, ended)
            leaving += [asyncio.ensure_future(leaves)] if leaves else []
            await asyncio.wait({waits, *leaving}, timeout=gate.patience, return_when=asyncio.FIRST_COMPLETED)
            self.end(call, "disconnected" if any(each.done() for each in leaving) else "waits_longer")
            how: WaitEnd = waits.result()
            return how
        finally:
            self._waits.pop(call, None)
            for each in leaving:
                each.cancel()

    def end(self, call: LiveCall, how: WaitEnd) -> None:
        """End the wait for a call, if anybody waits for it."""
        if call in self._waits:
            gate, waits = self._waits.pop(call)
            call.kept["went"] = how
            gate.went(call, how)
            waits.set_result(how)

    def end_repeated(self, call: LiveCall) -> None:
        """End the waits for the calls that this one repeats."""
        for earlier in self:
            if (call.tool, key_of(call.arguments)) == (earlier.tool, key_of(earlier.arguments)):
                self.end(earlier, "asked_again")
