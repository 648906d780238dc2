"""A real HTTP server on loopback that answers chat completions from a script, failures among them.

    with ScriptedServer([status(429, headers={"Retry-After": "1"}), completion("fine")]) as server:
        ...  # talk to server.base_url
    assert server.requests[0].body["seed"] == 7

The script is a list of steps, used up in the order in which requests arrive, or a function from a request's JSON to a
step. A list that has run out goes on with `default`, such a function. A function that raises answers 500, and leaving
the `with` block raises what it raised. Each answer closes its connection, so one connection is one request.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import TracebackType
from typing import Any

from stream_server import StreamServer

PATH = "/v1/chat/completions"


@dataclass(frozen=True)
class Step:
    """One answer. Delays and pauses are in seconds.

    delay       before the first byte
    cut         bytes of the body after which the connection is closed, short of the announced length; None: all
    hang_up     close the connection without a word
    piece       bytes of the body sent at once, with `pause` after each; None: all
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0.0
    cut: int | None = None
    hang_up: bool = False
    piece: int | None = None
    pause: float = 0.0


@dataclass(frozen=True)
class Received:
    """A request as it came in. Header names are in lower case; `body` is its parsed JSON, None where it is none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


Answerer = Callable[[Any], Step]
"""From a request's JSON to the step that answers it."""


def completion(
    text: str | None,
    *,
    usage: tuple[int, int] | None = (12, 3),
    finish: str | None = "stop",
    refusal: str | None = None,
    details: object = None,
) -> Step:
    """A chat completion; `usage` is (tokens in, tokens out), None to leave it out; `details` are those of the tokens in."""
    message = {"role": "assistant", "content": text} | ({"refusal": refusal} if refusal is not None else {})
    answer: dict[str, object] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if usage is not None:
        tokens_in, tokens_out = usage
        answer["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
            **({} if details is None else {"prompt_tokens_details": details}),
        }
    return raw(json.dumps(answer))


def raw(body: str | bytes, *, code: int = 200, content_type: str = "application/json") -> Step:
    """Any body at all."""
    encoded = body.encode() if isinstance(body, str) else body
    return Step(status=code, headers={"Content-Type": content_type}, body=encoded)


def status(code: int, *, headers: Mapping[str, str] | None = None, body: str | None = None) -> Step:
    """An answer with this status; by default its body is an error as OpenAI writes it."""
    text = json.dumps({"error": {"message": f"scripted {code}", "type": "scripted"}}) if body is None else body
    step = raw(text, code=code)
    return replace(step, headers={**step.headers, **(headers or {})})


def html(code: int = 200) -> Step:
    """A web page, as a proxy or a wrong path answers."""
    return raw("<!DOCTYPE html>\n<html><body>Welcome</body></html>", code=code, content_type="text/html")


def hang(seconds: float, then: Step | None = None) -> Step:
    """Say nothing for so long, then answer."""
    return replace(then or completion("late"), delay=seconds)


def cut_after(count: int, of: Step | None = None) -> Step:
    """Close the connection after `count` bytes of the body."""
    return replace(of or completion("never whole"), cut=count)


def hang_up() -> Step:
    """Take the request and close the connection without a word."""
    return Step(hang_up=True)


def trickle(of: Step | None = None, *, piece: int = 1, pause: float = 0.05) -> Step:
    """Send the body `piece` bytes at a time, with `pause` seconds after each."""
    return replace(of or completion("slow"), piece=piece, pause=pause)


def always_ok(_: Any) -> Step:
    return completion("OK")


class ScriptedServer(StreamServer):
    """Answers while its `with` block lasts.

    answer           what answers the next request
    requests         everything received so far, on any path, in order of arrival
    most_in_flight   the most requests that were open at once
    """

    def __init__(
        self,
        script: Iterable[Step] | Answerer = (),
        default: Answerer = always_ok,
        *,
        tls: ssl.SSLContext | None = None,
        path: str = PATH,
    ):
        super().__init__("scripted-server", tls)
        self.answer = script if callable(script) else _in_order(script, default)
        self.path = path
        self.requests: list[Received] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._errors: list[Exception] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port.result()}/v1"

    @property
    def bodies(self) -> list[Any]:
        """The JSON of every request so far."""
        return [received.body for received in self.requests]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        super().__exit__(kind, error, traceback)
        if self._errors and error is None:
            raise self._errors[0]

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            received = await _receive(reader)
            self.requests.append(received)
            await _send(writer, self._step(received))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, as clients do
        finally:
            self._in_flight -= 1
            writer.close()

    def _step(self, received: Received) -> Step:
        if (received.method, received.path) != ("POST", self.path):
            return status(404, body=json.dumps({"error": {"message": f"nothing at {received.path}"}}))
        try:
            return self.answer(received.body)
        except Exception as error:
            self._errors.append(error)
            return status(500, body=f"the script failed: {error!r}")


def _in_order(script: Iterable[Step], default: Answerer) -> Answerer:
    steps = iter(tuple(script))
    return lambda body: next(steps, None) or default(body)


async def _receive(reader: asyncio.StreamReader) -> Received:
    """Read one request; raises IncompleteReadError where the client leaves first."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(method, path, headers, _parsed(body))


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


async def _send(writer: asyncio.StreamWriter, step: Step) -> None:
    await asyncio.sleep(step.delay)
    if step.hang_up:
        return
    writer.write(_head(step))
    whole = step.body[: step.cut]
    piece = step.piece or max(1, len(whole))
    for start in range(0, len(whole), piece):
        writer.write(whole[start : start + piece])
        await writer.drain()
        await asyncio.sleep(step.pause)
    await writer.drain()


def _head(step: Step) -> bytes:
    headers = {"Content-Length": str(len(step.body)), "Connection": "close", **step.headers}
    reasons = {known.value: known.phrase for known in HTTPStatus}
    lines = [f"HTTP/1.1 {step.status:03} {reasons.get(step.status, 'Scripted')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
