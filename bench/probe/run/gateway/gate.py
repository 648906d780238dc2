"""The interface between the gateway's doors and the gate that decides what happens to each call.

A door is a proxy of one kind of connection (MCP over stdio, HTTP, the model's API, a database): it forwards bytes and knows
the wire format. A gate decides whether a call is forwarded and which response is sent, and never sees the wire. For each
call a door calls `arrive`, then `answer`, then `note_given`, in this order, and does what these methods return.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import JsonValue

from bench.probe.points import AnswerAction, CallAction

WaitEnd = Literal["disconnected", "cancelled", "asked_again", "waits_longer"]
"""How a client's wait for a response ended; "waits_longer" if it did not end within `patience`."""


class Undelivered(Exception):
    """A held call was not answered by its server. The text gives the reason."""


@dataclass(eq=False)
class LiveCall:
    """A call at a door of the gateway, from its arrival on.

    number         its place in the journal, from 1
    kind           the kind of its door
    door           the name of the server or service in the owner's config; "model", "function", or the name of a database's
                   store
    tool           the MCP tool, `METHOD /path` of a service, the function's name, the statements of a transaction, or the path
                   of the model's API
    arguments      the parsed arguments: of MCP; query and body of an HTTP request; the body of a request to the model
    reads          whether the tool says that it only reads: `readOnlyHint`, GET and HEAD; None if it says nothing
    idempotent     whether its method, or its server, says that repeating the call changes nothing more
    key            its `Idempotency-Key`
    life           the number of the agent's process that made it, from 1
    is_struck      whether the gate will change the response, which is known once the call has arrived. A stream is then
                   buffered. Otherwise its events are forwarded as they arrive, and `CallGate.answer` is awaited before the last
    wire_id        the id that the protocol gives it, as text; "" if it has none
    wire_form      the wire form of the fault
    replacement    the bytes that are sent for the actions `stale` and `answer`
    taped_answer   the bytes of the recorded response if the call is played from a tape; the call is then not forwarded
    answer         the parsed response of the server
    failed         whether the response is an error
    continues      the number of the call to which this request belongs (a resumed session, a polled task, input that was
                   requested)
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
    is_struck: bool = False
    wire_id: str = ""
    wire_form: str = ""
    replacement: bytes | None = None
    taped_answer: bytes = b""
    answer: JsonValue = None
    failed: bool = False
    continues: int | None = None
    deliver: Callable[[], Awaitable[bytes]] | None = None
    """Delivers a held call without its client, and returns the response's bytes. It also sets `answer` and `failed`, unless the
    call was answered before. Raises Undelivered."""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its server has answered, or it is known that the server never will."""
    door_state: dict[str, Any] = field(default_factory=dict)
    """What the door remembers about the call."""


class CallGate:
    """Decides what happens to each call. This class forwards every call; `FaultInjector` overrides it. A method may wait,
    and may kill the agent."""

    patience = 0.0

    async def arrive(self, call: LiveCall) -> CallAction:
        """Return what the door does with a call that has arrived."""
        del call
        return "pass"

    async def note_passed_on(self, call: LiveCall) -> None:
        """Note that the door forwards a held call, since its client waits longer than `patience`."""

    async def answer(self, call: LiveCall, answer: bytes) -> AnswerAction:
        """Return what the door does with a server's response to a call.

        Args:
            call: The call; its `answer` and `failed` are set.
            answer: The bytes that `call.replacement` can send again: an HTTP response with its head, or an MCP message; b"" if
                they are too many to be kept.
        """
        del call, answer
        return "give"

    async def note_given(self, call: LiveCall) -> None:
        """Note that the last byte of the response was sent to the agent."""

    async def note_end(self, call: LiveCall) -> None:
        """Note that a call ended without a response: its server broke the connection, or the agent disconnected first.
        Neither `answer` nor `note_given` is called afterwards."""

    def note_wait_end(self, call: LiveCall, how: WaitEnd) -> None:
        """Note that a client stopped waiting for a held response, or waited longer than `patience`."""

    def note_lock_wait(self, call: LiveCall) -> None:
        """Note that another database session waits for a lock of a held call, so that no other call can look at the data."""

    def notice(self, door: str, message: str) -> None:
        """Record something that belongs to no call: changed tools, a malformed message, a refused request."""


@dataclass(frozen=True)
class DoorContext:
    """What all doors of a gateway share: functions that return the gate of the current cell, the number of the next call, and
    the number of the agent's process, from 1."""

    gate: Callable[[], CallGate]
    next_number: Callable[[], int]
    process_number: Callable[[], int]

    def call(self, door: str, kind: str, tool: str, arguments: JsonValue, **fields: Any) -> LiveCall:
        """Return a new call; `fields` are further fields of `LiveCall`."""
        return LiveCall(self.next_number(), door, kind, tool, arguments, life=self.process_number(), **fields)
