"""Run an ASGI application under aiohttp: the request is read completely, and the answer is sent in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from aiohttp import web

AsgiMessage = MutableMapping[str, Any]
App = Callable[[AsgiMessage, Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Awaitable[None]]


async def asgi_response(app: App, request: web.Request) -> web.Response:
    """Return the application's answer to a request, whose body is read completely first."""
    body, status, headers = await request.read(), 500, list[tuple[str, str]]()
    unread_messages, body_parts = [{"type": "http.request", "body": body, "more_body": False}], list[bytes]()

    async def receive() -> AsgiMessage:
        """Return the request; a second call waits until the task is cancelled."""
        if not unread_messages:
            await asyncio.Event().wait()  # a client that goes away cancels this task
        return unread_messages.pop()

    async def send(message: AsgiMessage) -> None:
        """Collect the status, the headers and the body of the answer."""
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
        else:
            body_parts.append(message.get("body", b""))

    await app(_scope(request), receive, send)
    headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return web.Response(status=status, body=b"".join(body_parts), headers=headers)


def _scope(request: web.Request) -> AsgiMessage:
    """Return the ASGI scope of an HTTP request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.raw_path.encode(),
        "query_string": request.query_string.encode(),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
    }
