"""What an agent sends reaches the service as it was, and so does what the service answers."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from gates import ScriptedGate, exchanged, listening, raw_server

from bench.probe.points import AnswerAction
from bench.probe.run.gateway.gate import LiveCall
from bench.probe.run.gateway.subject import Service

OK = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-oDD-CaSe:  two \r\nX-odd-case: three\r\n"
    b"Content-Length: 7\r\n\r\n[1,2,3]"
)
CHUNKED = (
    b"HTTP/1.1 200 Fine, it is\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n"
    b"4;name=value\r\n[1,2\r\n3\r\n,3]\r\n0\r\nX-End: yes\r\n\r\n"
)
PACKED = gzip.compress(b'{"paid": 7}')
GZIP = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (
    len(PACKED),
    PACKED,
)
LARGE = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + b"0123456789" * 300_000


def asked(gate: ScriptedGate, request: bytes, answer: bytes, end: bytes = b"", size: int | None = None) -> tuple[bytes, bytes]:
    """Return what the service got and what the agent got; `PATH` in a request is the door's path."""

    async def ask() -> tuple[bytes, bytes]:
        async with raw_server(answer, end) as server, listening(gate) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path = address.removeprefix(listener.address).encode()
            place = listener.address.removeprefix("http://").encode()
            got = await exchanged(
                address, request.replace(b"PATH", path).replace(b"PLACE", place), len(answer) if size is None else size
            )
            host = server.url.removeprefix("http://").encode()
            return b"".join(server.got).replace(host, b"PLACE"), got.replace(listener.address.encode(), b"HERE")

    return asyncio.run(asyncio.wait_for(ask(), 10))


REQUESTS = {
    "GET": (
        b"GET PATH/a%20b/%C3%BC?q=1&q=%zz HTTP/1.1\r\nHost: PLACE\r\naCCept: */*\r\nX-A:1\r\nX-a: 2\r\nCookie: c=1\r\n\r\n",
        b"",
    ),
    "length": (
        b'POST PATH/pay HTTP/1.1\r\nHost: PLACE\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"sum":700}',
        b"}",
    ),
    "chunked": (
        b"POST PATH/pay HTTP/1.1\r\nHost: PLACE\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'3;x=y\r\n{"s\r\n8\r\num":700}\r\n0\r\n\r\n',
        b"\r\n0\r\n\r\n",
    ),
    "empty": (b"POST PATH/pay HTTP/1.1\r\nHost: PLACE\r\nContent-Length: 0\r\n\r\n", b""),
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("answer", [OK, CHUNKED, GZIP, LARGE], ids=["length", "chunked", "packed", "large"])
def test_bytes_are_equal_on_both_sides(name: str, answer: bytes) -> None:
    request, end = REQUESTS[name]
    gate = ScriptedGate()
    got, answered = asked(gate, request, answer, end)
    assert got == request.replace(b"PATH", b"")
    assert answered == answer
    assert gate.course == [("arrived", 1), ("answered", 1), ("given", 1)]
    assert not gate.notes


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: x\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    ],
)
def test_answers_without_a_body_or_a_length_are_given_as_they_came(answer: bytes) -> None:
    request = b"GET PATH/x HTTP/1.1\r\nHost: PLACE\r\nConnection: close\r\n\r\n"

    async def closing(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def ask() -> bytes:
        async with raw_server(closing) as server, listening(ScriptedGate()) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path = address.removeprefix(listener.address).encode()
            place = listener.address.removeprefix("http://").encode()
            return await exchanged(address, request.replace(b"PATH", path).replace(b"PLACE", place))

    assert asyncio.run(asyncio.wait_for(ask(), 10)) == answer


def test_the_head_of_a_long_body_is_given_without_it() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 123456\r\n\r\n"
    gate = ScriptedGate()
    _, got = asked(gate, b"HEAD PATH/x HTTP/1.1\r\nHost: PLACE\r\n\r\n", answer)
    assert got == answer
    assert gate.calls[0].reads is True


def test_a_client_that_waits_for_100_gets_it() -> None:
    request = b"PUT PATH/x HTTP/1.1\r\nHost: PLACE\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"
    going_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    got, answered = asked(ScriptedGate(), request, going_on + OK, b"}")
    assert got == request.replace(b"PATH", b"")
    assert answered == going_on + OK


def test_a_call_says_what_was_asked_and_answered() -> None:
    gate = ScriptedGate()
    asked(gate, b'POST PATH/pay?to=a&to=b&n=1 HTTP/1.1\r\nHost: PLACE\r\nContent-Length: 11\r\n\r\n{"sum":700}', GZIP, b"}")
    [call] = gate.calls
    assert (call.door, call.kind, call.tool, call.reads) == ("bank", "http", "POST /pay", None)
    assert call.arguments == {"query": {"to": ["a", "b"], "n": "1"}, "body": {"sum": 700}}
    assert (call.answer, call.failed) == ({"status": 200, "body": {"paid": 7}}, False)
    assert gate.answers[1] == GZIP


def test_a_long_body_is_known_by_its_digest() -> None:
    gate = ScriptedGate()
    asked(gate, b"GET PATH/x HTTP/1.1\r\nHost: PLACE\r\n\r\n", LARGE)
    answer = gate.calls[0].answer
    assert isinstance(answer, dict) and isinstance(body := answer["body"], dict)
    assert body["bytes"] == 3_000_000


@pytest.mark.parametrize(
    ("location", "given"),
    [
        ("/next", "/token/bank/next"),
        ("SERVER/next?a=1", "HERE/token/bank/next?a=1"),
        ("https://elsewhere/x", "https://elsewhere/x"),
        ("next", "next"),
    ],
)
def test_a_redirect_to_the_service_leads_to_the_gateway(location: str, given: str) -> None:
    async def moved(_: bytes, writer: asyncio.StreamWriter) -> None:
        url = f"http://127.0.0.1:{writer.get_extra_info('sockname')[1]}"
        place = location.replace("SERVER", url)
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    async def ask() -> str:
        async with raw_server(moved) as server, listening(ScriptedGate()) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
            request = f"GET {path}/x HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n"
            return (await exchanged(address, request.encode())).decode().replace(listener.address, "HERE")

    assert f"Location: {given}\r\n" in asyncio.run(asyncio.wait_for(ask(), 10))


POST = REQUESTS["length"]


def test_an_error_before_the_call_reaches_no_service() -> None:
    got, answered = asked(ScriptedGate(before={1: "error"}), POST[0], OK, POST[1], 100)
    assert not got
    assert answered.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")


def test_a_call_that_is_delivered_twice_is_answered_once() -> None:
    got, answered = asked(ScriptedGate(before={1: "twice"}), *(POST[0], OK, POST[1]))
    assert got == POST[0].replace(b"PATH", b"") * 2
    assert answered == OK


@pytest.mark.parametrize("after", ["break", "silence", "drop"])
def test_an_answer_that_is_lost_was_answered_and_is_not_given(after: AnswerAction) -> None:
    gate = ScriptedGate(after={1: after})

    async def ask() -> bytes:
        async with raw_server(OK, POST[1]) as server, listening(gate) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path, place = address.removeprefix(listener.address).encode(), listener.address.removeprefix("http://").encode()
            try:
                return await asyncio.wait_for(exchanged(address, POST[0].replace(b"PATH", path).replace(b"PLACE", place)), 0.3)
            except TimeoutError:
                await asyncio.sleep(0.05)
                return b"silence"
            except ConnectionResetError:
                return b"break"

    assert asyncio.run(asyncio.wait_for(ask(), 10)) == {"break": b"break", "silence": b"silence", "drop": b""}[after]
    went = [("disconnected", 1)] if after == "silence" else []
    assert gate.course == [("arrived", 1), ("answered", 1), *went]


@pytest.mark.parametrize("after", ["silence", "late"])
def test_a_client_that_outwaits_patience_gets_its_answer(after: AnswerAction) -> None:
    gate = ScriptedGate(after={1: after}, patience=0.1)
    _, answered = asked(gate, POST[0], OK, POST[1])
    assert answered == OK
    assert gate.course == [("arrived", 1), ("answered", 1), ("waits_longer", 1), ("given", 1)]


def test_a_client_that_asks_again_ends_the_silence() -> None:
    gate = ScriptedGate(after={1: "late"}, patience=5)

    async def ask() -> list[bytes]:
        async with raw_server(OK, POST[1]) as server, listening(gate) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path, place = address.removeprefix(listener.address).encode(), listener.address.removeprefix("http://").encode()
            request = POST[0].replace(b"PATH", path).replace(b"PLACE", place)
            first = asyncio.ensure_future(exchanged(address, request, len(OK)))
            await asyncio.sleep(0.1)
            return [await exchanged(address, request, len(OK)), await first]

    assert asyncio.run(asyncio.wait_for(ask(), 3)) == [OK, OK]
    assert ("asked_again", 1) in gate.course


@pytest.mark.parametrize(("after", "body"), [("empty", b"[]"), ("garbled", b"[1,\x00\xff\xfe")], ids=["empty", "garbled"])
def test_a_read_is_answered_with_what_stands_for_it(after: AnswerAction, body: bytes) -> None:
    gate = ScriptedGate(after={1: after})
    request = b"GET PATH/x HTTP/1.1\r\nHost: PLACE\r\nConnection: close\r\n\r\n"
    _, answered = asked(gate, request, OK, size=len(OK) - 7 + len(body))
    head, _, content = answered.partition(b"\r\n\r\n")
    assert content == body
    assert b"Content-Length: %d" % len(body) in head and b"X-oDD-CaSe:  two \r\n" in head


def test_an_answer_can_be_far_too_large_and_stay_json() -> None:
    async def ask() -> bytes:
        async with raw_server(OK) as server, listening(ScriptedGate(after={1: "too_large"})) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path, place = address.removeprefix(listener.address).encode(), listener.address.removeprefix("http://").encode()
            request = b"GET PATH/x HTTP/1.1\r\nHost: PLACE\r\nConnection: close\r\n\r\n"
            return await exchanged(address, request.replace(b"PATH", path).replace(b"PLACE", place))

    content = asyncio.run(asyncio.wait_for(ask(), 10)).partition(b"\r\n\r\n")[2]
    assert len(content) > 2**21 and set(json.loads(content)) == {1, 2, 3}


def test_a_stale_answer_is_the_one_that_is_handed_over() -> None:
    stale = OK.replace(b"[1,2,3]", b"[1,2,0]")
    _, answered = asked(ScriptedGate(after={1: "stale"}, instead=stale), REQUESTS["GET"][0], OK)
    assert answered == stale


def test_events_pass_as_they_come_and_are_answered_before_the_last() -> None:
    gate = ScriptedGate()

    async def ask() -> list[bytes]:
        seen = asyncio.Event()

        async def events(_: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n"
            )
            await seen.wait()
            writer.write(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")

        async with raw_server(events) as server, listening(gate) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path, place = address.removeprefix(listener.address), listener.address.removeprefix("http://")
            host, _, port = place.partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"GET {path}/x HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
            first = await reader.readuntil(b"data: 1\n\n\r\n")
            assert gate.course == [("arrived", 1)]
            seen.set()
            rest = await reader.readuntil(b"0\r\n\r\n")
            writer.close()
            return [first, rest]

    first, rest = asyncio.run(asyncio.wait_for(ask(), 10))
    assert first.endswith(b"9\r\ndata: 1\n\n\r\n") and rest == b"9\r\ndata: 2\n\n\r\n0\r\n\r\n"
    assert gate.course == [("arrived", 1), ("answered", 1), ("given", 1)]


def test_a_service_that_breaks_off_is_broken_off_and_noticed() -> None:
    gate = ScriptedGate()

    async def half(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(OK[:-3])
        writer.close()

    async def ask() -> None:
        async with raw_server(half) as server, listening(gate) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path, place = address.removeprefix(listener.address).encode(), listener.address.removeprefix("http://").encode()
            with pytest.raises(ConnectionResetError):
                await exchanged(address, REQUESTS["GET"][0].replace(b"PATH", path).replace(b"PLACE", place))

    asyncio.run(asyncio.wait_for(ask(), 10))
    assert [door for door, _ in gate.notes] == ["bank"]
    assert gate.course == [("arrived", 1), ("ended", 1)]


def test_an_agent_that_leaves_ends_the_wait_for_its_answer() -> None:
    gate = ScriptedGate()

    async def ask() -> None:
        ended = asyncio.Event()

        async def never(_: bytes, writer: asyncio.StreamWriter) -> None:
            await writer.wait_closed()
            ended.set()

        async with raw_server(never) as server, listening(gate) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path, place = address.removeprefix(listener.address).encode(), listener.address.removeprefix("http://").encode()
            request = REQUESTS["GET"][0].replace(b"PATH", path).replace(b"PLACE", place)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(exchanged(address, request), 0.2)
            await asyncio.sleep(0.1)

    asyncio.run(asyncio.wait_for(ask(), 10))
    assert gate.course == [("arrived", 1), ("disconnected", 1), ("ended", 1)]


def test_a_gate_that_kills_the_agent_is_not_ended_by_the_end_of_its_connection() -> None:
    class Killing(ScriptedGate):
        async def answer(self, call: LiveCall, answer: bytes) -> AnswerAction:
            agent[0].cancel()
            await asyncio.sleep(0.2)
            await super().answer(call, answer)
            return "drop"

    gate, agent = Killing(), list[asyncio.Task[bytes]]()

    async def ask() -> None:
        async with raw_server(OK, POST[1]) as server, listening(gate) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", server.url))
            path, place = (
                address.removeprefix(listener.address).encode(),
                listener.address.removeprefix("http://").encode(),
            )
            request = POST[0].replace(b"PATH", path).replace(b"PLACE", place)
            agent.append(asyncio.ensure_future(exchanged(address, request)))
            await asyncio.wait(agent)
            await asyncio.sleep(0.4)

    asyncio.run(asyncio.wait_for(ask(), 10))
    assert gate.course == [("arrived", 1), ("answered", 1)]
