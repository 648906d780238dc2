"""The listener serves the agent and no other."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from gates import ScriptedGate, exchanged, listening, raw_server

from bench.common.errors import ConfigError
from bench.probe.run.gateway.subject import Service

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def answered(request: str, gate: ScriptedGate) -> bytes:
    """Return what the gateway answers; HERE stands for its host and port."""

    async def ask() -> bytes:
        async with raw_server(OK) as server, listening(gate) as listener:
            listener.add_service(Service("bank", "BANK_URL", server.url))
            here = listener.address.removeprefix("http://")
            got = await exchanged(listener.address, request.replace("HERE", here).encode())
            assert not server.got or got.endswith(b"ok")
            return got

    return asyncio.run(asyncio.wait_for(ask(), 10))


REFUSED = {
    "another token": ("GET /tokem/bank/x HTTP/1.1\r\nHost: HERE\r\n\r\n", b"401"),
    "no token": ("GET /bank/x HTTP/1.1\r\nHost: HERE\r\n\r\n", b"401"),
    "another door": ("GET /token/banc/x HTTP/1.1\r\nHost: HERE\r\n\r\n", b"401"),
    "another host": ("GET /token/bank/x HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
    "no host": ("GET /token/bank/x HTTP/1.1\r\n\r\n", b"403"),
    "an origin": ("GET /token/bank/x HTTP/1.1\r\nHost: HERE\r\nOrigin: http://HERE\r\n\r\n", b"403"),
    "a page": ("GET /token/bank/x HTTP/1.1\r\nHost: HERE\r\nSec-Fetch-Site: cross-site\r\n\r\n", b"403"),
    "a tunnel": ("CONNECT /token/bank HTTP/1.1\r\nHost: HERE\r\n\r\n", b"404"),
    "no HTTP": ("hello\r\n\r\n", b"400"),
    "two lengths": (
        "POST /token/bank/x HTTP/1.1\r\nHost: HERE\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"400",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_stranger_is_refused_and_noticed(name: str) -> None:
    request, status = REFUSED[name]
    gate = ScriptedGate()
    assert answered(request, gate).split()[1] == status
    assert len(gate.notes) == 1 and not gate.calls
    assert "token" not in repr(gate.notes)


def test_a_head_without_an_end_is_not_read_on() -> None:
    gate = ScriptedGate()
    with suppress(ConnectionResetError):
        assert answered(f"GET /token/bank/x HTTP/1.1\r\nHost: HERE\r\nA: {'a' * 2**20}", gate).split()[1] == b"400"
    assert gate.notes == [("", "a request is no HTTP/1.1: a head that is too long")]


def test_whoever_knows_the_address_is_served_on_one_connection() -> None:
    request = "GET /token/bank/x HTTP/1.1\r\nHost: HERE\r\n\r\n"
    last = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
    gate = ScriptedGate()
    assert answered(request + request + last, gate) == OK * 3
    assert [call.number for call in gate.calls] == [1, 2, 3]


def test_an_upgrade_is_not_passed_on_and_is_noticed() -> None:
    request = "GET /token/bank/x HTTP/1.1\r\nHost: HERE\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    gate = ScriptedGate()
    assert answered(request, gate) == OK
    assert [door for door, _ in gate.notes] == ["bank"]


@pytest.mark.parametrize("url", ["", "ftp://x/", "127.0.0.1:80", "http://", "http://[::1", "http://x:port/"])
def test_an_address_that_is_none_is_one_clear_line(url: str) -> None:
    async def add() -> None:
        async with listening(ScriptedGate()) as listener:
            listener.add_service(Service("bank", "BANK_URL", url))

    with pytest.raises(ConfigError, match=r"^bank: its address is no http:// or https:// address; write one"):
        asyncio.run(add())


def test_two_doors_of_one_name_are_refused() -> None:
    async def add() -> None:
        async with listening(ScriptedGate()) as listener:
            for _ in range(2):
                listener.add_service(Service("bank", "BANK_URL", "http://127.0.0.1:1"))

    with pytest.raises(ConfigError, match="two doors have this name"):
        asyncio.run(add())


def test_a_service_that_does_not_listen_breaks_the_connection_and_is_noticed() -> None:
    gate = ScriptedGate()

    async def ask() -> None:
        async with listening(gate) as listener:
            address = listener.add_service(Service("bank", "BANK_URL", "http://127.0.0.1:1"))
            place = listener.address.removeprefix("http://")
            with pytest.raises(ConnectionResetError):
                await exchanged(address, f"GET /token/bank/x HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())

    asyncio.run(asyncio.wait_for(ask(), 10))
    assert gate.notes == [("bank", "cannot be reached: ConnectionRefusedError")]


def test_the_address_of_a_door_opens_no_other_door() -> None:
    async def ask() -> list[bytes]:
        async with raw_server(OK) as server, listening(ScriptedGate(), token="") as listener:
            bank, shop = (listener.add_service(Service(name, name, server.url)) for name in ("bank", "shop"))
            place, token = listener.address.removeprefix("http://"), bank.split("/")[3]
            targets = [f"/{token}/bank/x", f"/{token}/shop/x", shop.removeprefix(listener.address) + "/x"]
            line = "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n"
            return [await exchanged(listener.address, line.format(target, place).encode()) for target in targets]

    assert [got.split()[1] for got in asyncio.run(asyncio.wait_for(ask(), 10))] == [b"200", b"401", b"200"]


def test_the_end_of_the_listener_ends_what_waits() -> None:
    async def never(_: bytes, writer: asyncio.StreamWriter) -> None:
        await writer.wait_closed()

    async def ask() -> bytes:
        async with raw_server(never) as server:
            async with listening(ScriptedGate()) as listener:
                address = listener.add_service(Service("bank", "BANK_URL", server.url))
                place = listener.address.removeprefix("http://")
                asking = asyncio.ensure_future(
                    exchanged(address, f"GET /token/bank/x HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
                )
                await asyncio.sleep(0.1)
            return await asking

    assert asyncio.run(asyncio.wait_for(ask(), 5)) == b""
