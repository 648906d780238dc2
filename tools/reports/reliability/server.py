"""An endpoint that answers each chat completion after a fixed time, in a process of its own, and keeps its own account of it.

    python tools/reports/reliability/server.py SECONDS < replies.json

reads what to answer (a text that the request holds -> the reply), prints its port, and serves until its input is closed.
`GET /log` gives, as JSON, for each request answered when it was wholly read and when its reply was written: seconds, on a clock
that all processes of a machine share. `DELETE /log` forgets them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable

NOBODY_ASKED = "OK"


class Log:
    """The requests that a server got. `most` is the most that were open at once."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.spans: list[tuple[float, float]] = []
        self.open = self.most = 0

    def took(self) -> None:
        self.open += 1
        self.most = max(self.most, self.open)

    def answered(self, received: float) -> None:
        self.open -= 1
        self.spans.append((received, time.monotonic()))


class Connection(asyncio.Protocol):
    """One connection that stays open for several requests, one at a time."""

    transport: asyncio.Transport

    def __init__(self, answer: Callable[[bytes], bytes], seconds: float, log: Log):
        self._answer, self._seconds, self._log = answer, seconds, log
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if not end or len(body) < _length(head):
            return
        self._buffer = b""
        if head.startswith(b"POST"):
            self._log.took()
            asyncio.get_running_loop().call_later(self._seconds, self._reply, body, time.monotonic())
        else:
            self._tell(clear=head.startswith(b"DELETE"))

    def _reply(self, body: bytes, received: float) -> None:
        self.transport.write(self._answer(body))
        self._log.answered(received)

    def _tell(self, *, clear: bool) -> None:
        self.transport.write(response(json.dumps({"spans": self._log.spans, "most": self._log.most}).encode()))
        if clear:
            self._log.clear()


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)


def response(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def completion(text: str) -> bytes:
    """Return the whole response, head and body."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return response(json.dumps(body).encode())


async def serve(seconds: float, replies: dict[str, str]) -> None:
    ready = {json.dumps(marker)[1:-1].encode(): completion(reply) for marker, reply in replies.items()}
    nothing, log = completion(NOBODY_ASKED), Log()

    def answer(body: bytes) -> bytes:
        return next((reply for marker, reply in ready.items() if marker in body), nothing)

    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(answer, seconds, log), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), json.loads(sys.stdin.readline())))
