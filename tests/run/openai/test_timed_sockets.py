"""When bytes came is when they lay ready, and not when a busy process read them."""

from __future__ import annotations

import asyncio
import socket
from time import perf_counter_ns, time_ns

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import ScriptedServer, hang

from bench.record.messages import Message
from bench.run.models.base import Request, RequestContext
from bench.run.openai.model import OpenAIModel
from bench.run.openai.settings import OpenAISettings
from bench.run.openai.timed_sockets import HAS_TIMESTAMPS, SO_TIMESTAMPNS, TIMESPEC, TimedSocket, timed_socket

LATER = 50_000_000
stamped = pytest.mark.skipif(not HAS_TIMESTAMPS, reason="the kernel stamps nothing here")


def busy_until(moment: int) -> None:
    while perf_counter_ns() < moment:
        pass


def read_late(ours: TimedSocket, theirs: socket.socket, *, into: bool) -> bool:
    """Whether an answer that is read a good while after it was sent is known to have come before that."""
    ours.send(b"?")
    assert theirs.recv(1) == b"?"
    theirs.send(b"answer")
    sent, buffer = perf_counter_ns(), bytearray(9)
    busy_until(sent + LATER)
    assert (ours.recv_into(buffer) if into else len(ours.recv(9))) == 6
    began, ended = ours.flight()
    assert began <= ended <= perf_counter_ns()
    return ended < sent + LATER // 2


@stamped
@pytest.mark.parametrize("into", [False, True])
def test_bytes_that_lay_unread_had_come_when_they_came(into: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, timed_socket((socket.AF_INET, socket.SOCK_STREAM, 0)) as ours:
        ours.connect(server.getsockname())
        theirs, _ = server.accept()
        with theirs:  # the kernel begins to stamp a moment after the first socket of all asks for it
            assert any(read_late(ours, theirs, into=into) for _ in range(20))


@given(st.integers(-(10**12), 10**12))
def test_a_wall_clock_that_was_set_meanwhile_moves_no_arrival_out_of_what_is_possible(shift: int) -> None:
    with TimedSocket(socket.AF_INET, socket.SOCK_STREAM, 0) as timed:
        stamp = TIMESPEC.pack(*divmod(time_ns() + shift, 10**9))
        timed._stamp([(socket.SOL_SOCKET, SO_TIMESTAMPNS, stamp)])
        assert timed.sent <= timed.arrived <= perf_counter_ns()


@stamped
def test_a_call_ends_when_its_reply_is_there_however_busy_this_process_is() -> None:
    request = Request((Message("user", "Hello"),), 1, RequestContext("pack", ("triage",), 0, 1))

    async def busy(server: ScriptedServer) -> tuple[int, int, int]:
        model = OpenAIModel("small", OpenAISettings(base_url=server.base_url))
        call = asyncio.create_task(model.reply(request, asyncio.sleep))
        while not server.requests:  # noqa: ASYNC110  # they come in another thread
            await asyncio.sleep(0.001)
        busy_until(perf_counter_ns() + 8 * LATER)
        freed = perf_counter_ns()
        began, ended = (await call).flight or (0, 0)
        await model.close()
        return began, ended, freed

    with ScriptedServer([hang(0.05)]) as server:
        began, ended, freed = asyncio.run(busy(server))
    assert 50_000_000 <= ended - began < freed - began
