"""Who may not ask at an endpoint, told over real sockets: what a page in a browser can send, and what asks too much."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import httpx2
import pytest
from aiohttp import web

from bench.run.endpoint.server import application, serve_application
from bench.wire.access_guard import MAX_BODY_BYTES, AccessGuard
from bench.wire.problem import Problem

TOKEN = "a-token"
ASKED = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


def behind(door: AccessGuard, client: Callable[[str], Awaitable[None]]) -> tuple[list[str], list[int]]:
    """What reached the handler while a client asked at a root address, and the statuses that the trial was told of."""
    reached, statuses = list[str](), list[int]()

    async def handler(request: web.Request) -> web.StreamResponse:
        reached.append(request.path)
        return web.json_response(len(await request.read()))

    def on_refusal(problem: Problem) -> None:
        statuses.append(problem.status)

    async def serve() -> None:
        async with serve_application(application([web.route("*", "/{tail:.*}", handler)], door, on_refusal), door, 0) as root:
            await client(root)

    asyncio.run(serve())
    return reached, statuses


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8090"}, 200),
        ({"Host": "[::1]:8090"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Host": "evil.example:8090"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost@evil.example"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer none"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": "Bearer \xe9"}, 401),
        ({"Authorization": "", "api-key": TOKEN}, 200),
        ({"Authorization": "", "api-key": "none"}, 401),
        ({"Authorization": "", "api-key": "\xe9"}, 401),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_and_a_stranger_are_turned_away_and_reach_no_trial(headers: dict[str, str], status: int, method: str) -> None:
    async def client(root: str) -> None:
        async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
            sent = [(name.encode(), value.encode("latin-1")) for name, value in {**ASKED, **headers}.items()]
            response = await http.request(method, f"{root}/v1/chat/completions", headers=sent)
        assert response.status_code == status
        assert status == 200 or (response.headers["connection"], response.headers["x-should-retry"]) == ("close", "false")

    door = AccessGuard(TOKEN)
    reached, statuses = behind(door, client)
    assert (len(reached), statuses, door.refusals) == ((1, [], 0) if status == 200 else (0, [], 1))


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Type": "application/json; charset=utf-8"}, b"{}", 200),
        ({"Content-Type": "text/plain"}, b"", 200),
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"{}", 415),
        ({"Content-Encoding": "gzip"}, b"\x1f\x8b", 415),
        ({}, b" " * MAX_BODY_BYTES, 200),
        ({}, b" " * (MAX_BODY_BYTES + 1), 413),
    ],
)
def test_a_body_is_json_unpacked_and_bounded_and_what_is_not_leaves_its_trace(
    headers: dict[str, str], body: bytes, status: int
) -> None:
    async def client(root: str) -> None:
        async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
            response = await http.post(f"{root}/v1/chat/completions", content=body, headers={**ASKED, **headers})
        assert response.status_code == status

    reached, statuses = behind(AccessGuard(TOKEN), client)
    assert (len(reached), statuses) == ((1, []) if status == 200 else (0, [status]))


HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-token\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("sent", [b"", b"POST /trial", HEAD, HEAD + b"Content-Length: 9\r\n\r\n{", HEAD + b"\r\n{}"])
def test_a_connection_that_stays_half_open_is_closed_and_those_too_many_at_once(sent: bytes) -> None:
    async def client(root: str) -> None:
        address = urlsplit(root).hostname, urlsplit(root).port
        opened = [await asyncio.open_connection(*address) for _ in range(3)]
        opened[0][1].write(sent)
        assert await opened[2][0].read() == b"", "one too many"
        answer = await opened[0][0].read()
        assert answer == b"" or answer.startswith((b"HTTP/1.1 408", b"HTTP/1.0 400"))
        for _, writer in opened:
            writer.close()
            await writer.wait_closed()

    reached, _ = behind(AccessGuard(TOKEN, timeout=0.1, limit=2), client)
    assert reached == []


@pytest.mark.parametrize("further", [b"", b"POST /trial", HEAD])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_half_sent_second_request_on_a_kept_connection_is_closed_in_time(further: bytes, at_once: bool) -> None:
    async def client(root: str) -> None:
        reader, writer = await asyncio.open_connection(urlsplit(root).hostname, urlsplit(root).port)
        whole = HEAD + b"Content-Length: 2\r\n\r\n{}"
        writer.write(whole + further if at_once else whole)
        assert (await reader.readuntil(b"\r\n\r\n2")).startswith(b"HTTP/1.1 200")
        if not at_once:
            writer.write(further)
        rest = await asyncio.wait_for(reader.read(), 30)
        assert rest == b"" or rest.startswith(b"HTTP/1.1 408")
        writer.close()
        await writer.wait_closed()

    reached, _ = behind(AccessGuard(TOKEN, timeout=0.1, keep_alive=0.1), client)
    assert reached == ["/"]


def test_the_connection_of_a_client_that_keeps_it_serves_the_next_request() -> None:
    async def client(root: str) -> None:
        async with httpx2.AsyncClient(trust_env=False, verify=False, headers=ASKED) as http:
            for _ in range(3):
                assert (await http.post(f"{root}/v1/chat/completions", content=b"{}")).status_code == 200

    assert len(behind(AccessGuard(TOKEN), client)[0]) == 3
