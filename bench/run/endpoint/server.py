"""The measuring endpoint: it serves a session on loopback as an OpenAI-compatible API. Injected faults are real HTTP responses.

    /v1/chat/completions           asks for all of the session's subtasks
    /NAME+NAME/v1/chat/completions asks for these subtasks
    /v1/deployments/MODEL/...      the same as /v1/..., for Azure's clients; also /openai/deployments/MODEL/...
    /v1/responses                  the same in another dialect (`bench.run.endpoint.dialect`); also /NAME+NAME/v1/responses
    /v1/models                     one model: the experiment's, whatever name the client sends

    429, 500          with Retry-After if the fault has one
    time-out          nothing comes: after the fault's seconds the connection is dropped
    cut-off           half of the body comes, then the connection is cut
    the model's own   429 as it came; 504 if it took too long; 502 if it failed otherwise
    not recorded      404: a recording holds no reply to this request, and none to its repetition
    refused           400: it asks for what is not passed on; 403: its subtask's attempts are used up; 404: nothing is here
    turned away       401, 403: the client may not ask here (`bench.wire.access_guard`)

The experiment's sampling settings, seed and model name replace the client's. A refused request reaches no model and costs
nothing, but leaves an event. With a simulated or recorded model, the model's seconds run on the trial's clock and take no real
time; the client, its back-off and its time-outs are real. A client that makes N calls together then sends `X-Bench-Parallel: N`
on each of them, or its trial ends in an error. The endpoint runs on the trial's event loop: a framework that blocks must run in
a thread.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import time

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bench.common.errors import (
    BadAnswer,
    CallFailed,
    CutOff,
    EndpointError,
    GaveUp,
    NotRecorded,
    RateLimited,
    TimedOut,
    nearest,
)
from bench.run.endpoint import wire
from bench.run.endpoint.dialect import CHAT, DIALECTS, Dialect
from bench.run.endpoint.wire import Chat
from bench.run.models.base import Reply
from bench.run.trial.effects import AskerDies, CutReply
from bench.run.trial.endpoint_session import PARALLEL, EndpointSession, Exchange
from bench.scenario import Subtask
from bench.wire.access_guard import MAX_BODY_BYTES, MAX_CONNECTIONS, AccessGuard, AccessRefused
from bench.wire.problem import MAX_NAME_CHARS, Problem

LOOPBACK = "127.0.0.1"
LEAVE_AT_ONCE = 0.001
"""Seconds that requests in flight get when the session ends; aiohttp takes 0 for no limit."""

LONG_BODY = 2**17
"""A request with more bytes is read in a thread."""
MOST_TOGETHER = MAX_CONNECTIONS
"""The most calls made together: a trial waits until all of them have come."""
UNAVAILABLE = 503
SHOULD_RETRY = "x-should-retry"
"""A header: OpenAI's clients do not repeat a request whose answer says `false` here, since no repetition can help."""

OTHER_APIS = ("/embeddings", "/completions", "/count_tokens", "/images/generations", "/audio/speech")
"""Ends of addresses that an agent may ask at, but that are not served."""


def asks_for_reply(path: str) -> bool:
    """Return whether a request to this path asks for a model's reply, in any dialect."""
    return path.endswith(tuple(dialect.path for dialect in DIALECTS))


@asynccontextmanager
async def serve_session(session: EndpointSession) -> AsyncIterator[str]:
    """Serve a session at a port of its own while the block runs; requests still in flight at its end are cancelled. Clients
    need the session's API key, which is new each time."""
    session.api_key = secrets.token_urlsafe(24)
    app = application(
        routes(lambda: session),
        guard := AccessGuard(session.api_key),
        lambda problem: session.log_refusal(problem.status, problem.message),
    )
    async with serve_application(app, guard, 0) as root:
        yield root


def application(
    served: Iterable[web.RouteDef], guard: AccessGuard, on_refusal: Callable[[Problem], object], *within: Middleware
) -> web.Application:
    """Return a web application behind an access guard. Only requests that the guard lets in reach the middlewares in
    `within`."""
    middlewares = [in_openai_style(on_refusal), guard.check_access, *within]
    app = web.Application(middlewares=middlewares, client_max_size=MAX_BODY_BYTES)
    app.add_routes(served)
    return app


@asynccontextmanager
async def serve_application(
    app: web.Application, guard: AccessGuard, port: int, patience: float = LEAVE_AT_ONCE
) -> AsyncIterator[str]:
    """Serve an application on loopback, at any free port for 0, and yield its root address. At the end, requests in flight get
    `patience` seconds. Raises EndpointError if the port is not available."""
    runner = web.AppRunner(
        app,
        handle_signals=False,
        access_log=None,
        logger=logging.Logger("unheard", logging.CRITICAL),  # else Python prints a traceback for each malformed request
        auto_decompress=False,
        keepalive_timeout=guard.keep_alive,
        lingering_time=1.0,  # seconds for the rest of a body that was refused
        handler_cancellation=True,
        shutdown_timeout=patience,
    )
    await runner.setup()
    assert runner.server
    try:
        listening = await _listen(functools.partial(guard.connection, runner.server), port)
        try:
            yield f"http://{LOOPBACK}:{listening.sockets[0].getsockname()[1]}"
        finally:
            listening.close()
    finally:
        await runner.cleanup()


async def _listen(connection: Callable[[], asyncio.Protocol], port: int) -> asyncio.Server:
    try:
        return await asyncio.get_running_loop().create_server(connection, LOOPBACK, port)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be had: {error.strerror}"
        raise EndpointError(f"port {port} at {LOOPBACK} {why}; give another with --port") from error


def routes(current: Callable[[], EndpointSession], model: str = wire.MODEL) -> list[web.RouteDef]:
    """Return the routes of the current session's API. `model` is the name under which the API lists its model."""
    since = int(time())

    def asking(dialect: Dialect) -> Handler:
        """Return the handler of requests to a model in this dialect."""

        async def ask(request: web.Request) -> web.StreamResponse:
            session = current()
            subtasks = session.subtasks_at(request.match_info.get("names", ""))
            if subtasks is None:
                raise _unknown_names(request, session)
            body, together = await request.read(), _together(request)
            read = functools.partial(dialect.read, body, session.parameters, session.exchanges)
            asked = await asyncio.to_thread(read) if len(body) > LONG_BODY else read()
            asked = replace(asked, model=model, created=int(time()))
            session.put_aside(asked.set_aside)
            return await _Exchange(request, session, dialect, asked).respond(subtasks, together)

        return ask

    async def models(_: web.Request) -> web.StreamResponse:
        listed = {"id": model, "object": "model", "created": since, "owned_by": model}
        return web.json_response({"object": "list", "data": [listed]})

    async def astray(request: web.Request) -> web.StreamResponse:
        names = request.match_info["names"]
        raise _nothing_at(request, names=f"/{names}" if current().subtasks_at(names) else "")

    azures = (f"{base}/deployments/{{deployment}}" for base in ("/v1", "/openai", "/v1/openai"))
    roots, dialects = ("/v1", "/{names}/v1", *azures), list(DIALECTS)
    return [
        *(web.post(f"{root}{dialect.path}", asking(dialect)) for dialect in dialects for root in roots),
        *(web.post(f"/{{names}}{dialect.path}", astray) for dialect in dialects),
        web.get("/v1/models", models),
        web.get("/{names}/v1/models", models),
    ]


def in_openai_style(on_refusal: Callable[[Problem], object]) -> Middleware:
    """Return a middleware that answers a refused request with an error body in OpenAI's form. `on_refusal` gets each refused
    request except GET requests, which only look, and requests that the guard turned away: they come from no measured agent."""

    @web.middleware
    async def in_style(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request, and turn any error into an error body."""
        try:
            return await handler(request)
        except AccessRefused as stranger:
            return _close_after(_refusal(stranger, **{SHOULD_RETRY: "false"}))
        except Problem as refused:
            problem = refused
        except web.HTTPNotFound:
            problem = _nothing_at(request)
        except web.HTTPException as refused:
            problem = Problem(refused.status, f"{request.method} {request.path}: {refused.reason}")
        except Exception as bug:  # the session keeps it, and the trial ends with it
            return _refusal(Problem(500, f"{type(bug).__name__}: {bug}", "internal_error"), **{SHOULD_RETRY: "false"})
        if request.method != "GET":
            on_refusal(problem)
        return _refusal(problem, **({SHOULD_RETRY: "false"} if problem.status != UNAVAILABLE else {}))

    return in_style


def _together(request: web.Request) -> int | None:
    """Return how many calls, this call included, the client makes together; None if the request does not say."""
    number = request.headers.get(PARALLEL)
    if number is None:
        return None
    if not (number.isascii() and number.isdecimal()) or len(number) > MAX_NAME_CHARS or not 1 <= int(number) <= MOST_TOGETHER:
        problem = f"give the number of calls made together, 1 to {MOST_TOGETHER}, not '{number[:MAX_NAME_CHARS]}'"
        raise Problem(400, f"{PARALLEL}: {problem}")
    return int(number)


def _nothing_at(request: web.Request, why: str = "", names: str = "") -> Problem:
    """Return a 404 that says what the client may have meant. `names` is the part of the address that names subtasks."""
    path = request.path.rstrip("/")
    if not why and asks_for_reply(path):
        why = f": a base_url ends in /v1, as http://{request.host}{names}/v1 does"
    elif not why and path.endswith(OTHER_APIS):
        *others, last = DIALECTS.names
        why = f": only {', '.join(others)} and {last} are served; set your client to ask at {CHAT.path}"
    return Problem(404, f"nothing is served at {request.method} {request.path}{why}", code="not_found")


def _unknown_names(request: web.Request, session: EndpointSession) -> Problem:
    known = {subtask.name for subtask in session.subtasks}
    names = request.match_info["names"].split("+")
    unknown = [name for name in names if name not in known]
    why = f"no subtask is called '{unknown[0]}'; {nearest(unknown[0], known)}" if unknown else "a subtask is named twice"
    return _nothing_at(request, f": {why}")


def _close_after(response: web.StreamResponse) -> web.StreamResponse:
    """Make this response the last one of its connection."""
    response.force_close()
    return response


def _refusal(problem: Problem, **headers: str) -> web.StreamResponse:
    return web.json_response(problem.body, status=problem.status, headers=headers)


@dataclass(frozen=True)
class _Exchange:
    """A valid request, until it is answered in its dialect."""

    request: web.Request
    session: EndpointSession
    dialect: Dialect
    chat: Chat

    async def respond(self, subtasks: tuple[Subtask, ...], together: int | None) -> web.StreamResponse:
        """Ask the session for the replies, and return the response."""
        replies: list[Reply] = []
        for _ in range(self.chat.replies):
            self.session.received += 1
            number = self.session.received
            try:
                replies.append(await self.session.answer(subtasks, self.chat.messages, together, self.chat.options))
            except CallFailed as failure:
                return await self._respond_to_failure(failure, number)
            except GaveUp as reached:
                self.session.received -= 1  # it was not taken after all
                raise Problem(403, f"{reached}; hand in what you have, or give up", code="attempts_used_up") from reached
        chat = self.chat
        self.session.exchanges[number] = Exchange(chat.messages, chat.instructions, chat.options, replies[-1])
        return await self._respond(replies, number)

    async def _respond(self, replies: Sequence[Reply], number: int) -> web.StreamResponse:
        if not self.chat.stream:
            return web.Response(body=self.dialect.body(replies, number, self.chat), content_type="application/json")
        response = await self._event_stream()
        for event in self.dialect.stream(replies, number, self.chat):
            await response.write(event)
        return response

    async def _event_stream(self) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(self.request)
        return response

    async def _respond_to_failure(self, failure: CallFailed, number: int) -> web.StreamResponse:
        """Answer a request whose call of the model failed: with part of the reply, a closed connection, or an error."""
        if isinstance(failure, CutOff):
            part = failure.begun if isinstance(failure, CutReply) else Reply(failure.partial)
            response = await (self._cut_stream if self.chat.stream else self._cut_body)(part, number)
            if isinstance(failure, AskerDies):
                failure.die()
            return response
        if isinstance(failure, TimedOut) and failure.injected:
            return hang_up(self.request, web.Response())
        return _failure_response(failure)

    async def _cut_body(self, part: Reply, number: int) -> web.StreamResponse:
        sent = self.dialect.cut_body(part, number, self.chat)
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(2 * len(sent))})
        await response.prepare(self.request)
        await response.write(sent)
        return hang_up(self.request, response)

    async def _cut_stream(self, part: Reply, number: int) -> web.StreamResponse:
        response = await self._event_stream()
        for chunk in self.dialect.cut_stream(part, number, self.chat):
            await response.write(chunk)
        return hang_up(self.request, response)


def hang_up(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """Close the connection when all written bytes are sent; aiohttp then drops the rest of the response."""
    if request.transport is not None:
        request.transport.close()
    return response


def _failure_response(failure: CallFailed) -> web.StreamResponse:
    """Return the HTTP response for a failed call."""
    headers = {} if failure.retry_after is None else {"Retry-After": f"{failure.retry_after:g}"}
    if not failure.passing:
        headers[SHOULD_RETRY] = "false"
    return _refusal(_problem_of(failure), **headers)


def _problem_of(failure: CallFailed) -> Problem:
    """Return the HTTP error that a client gets for a failed call."""
    if isinstance(failure, RateLimited):
        message = "too many requests; try again later" if failure.injected else failure.detail
        return Problem(429, message, "rate_limit_error", code="rate_limit_exceeded")
    if isinstance(failure, TimedOut):
        return Problem(504, failure.detail, "server_error", code=failure.kind)
    if isinstance(failure, NotRecorded):  # no client retries after this status
        return Problem(404, failure.detail, code=failure.kind)
    kind = "upstream_error" if isinstance(failure, BadAnswer) else "server_error"
    if failure.injected:
        return Problem(500, "the server failed; try again later", kind, code=failure.kind)
    return Problem(502, failure.detail, kind, code=failure.kind)
