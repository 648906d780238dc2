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
    refused           400: a field would not be passed on; 403: the subtask's attempts are used up; 404: no such address
    turned away       401, 403: the client may not use this endpoint (`bench.wire.access_guard`)

The experiment's sampling settings, seed and model name replace the client's. A refused request reaches no model and costs
nothing, but leaves an event. With a simulated or recorded model, the model's seconds run on the trial's clock and take no real
time; the client, its back-off and its time-outs are real. With these models, a client that makes N calls together must send
`X-Bench-Parallel: N` with each of them, or its trial ends in an error. The endpoint runs on the trial's event loop: a framework
that blocks must run in a thread.
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
SHUTDOWN_TIMEOUT_S = 0.001
"""Seconds that requests in flight get when the session ends; aiohttp takes 0 for no limit."""

MAX_BYTES_ON_LOOP = 2**17
"""A request with more bytes is read in a thread, and not on the event loop."""
MAX_PARALLEL = MAX_CONNECTIONS
"""The most calls that a client can declare as made together: all of them must be able to connect at the same time."""
UNAVAILABLE = 503
SHOULD_RETRY = "x-should-retry"
"""A header of an answer. OpenAI's clients do not repeat a request if it is `false`, as it is here if no repetition can help."""

OTHER_APIS = ("/embeddings", "/completions", "/count_tokens", "/images/generations", "/audio/speech")
"""Ends of addresses of other APIs, which are not served."""


def asks_for_reply(path: str) -> bool:
    """Return whether a request to this path asks for a model's reply, in any dialect."""
    return path.endswith(tuple(dialect.path for dialect in DIALECTS))


@asynccontextmanager
async def serve_session(session: EndpointSession) -> AsyncIterator[str]:
    """Serve a session at a port of its own while the block runs, and yield the root address. Requests in flight at the end are
    cancelled. Clients need the session's API key, which is new each time."""
    session.api_key = secrets.token_urlsafe(24)
    app = application(
        routes(lambda: session),
        guard := AccessGuard(session.api_key),
        lambda problem: session.log_refusal(problem.status, problem.message),
    )
    async with serve_application(app, guard, 0) as root:
        yield root


def application(
    served: Iterable[web.RouteDef], guard: AccessGuard, on_refusal: Callable[[Problem], object], *inner: Middleware
) -> web.Application:
    """Return a web application behind an access guard. Only requests that the guard lets in reach the middlewares `inner`."""
    middlewares = [in_openai_style(on_refusal), guard.check_access, *inner]
    app = web.Application(middlewares=middlewares, client_max_size=MAX_BODY_BYTES)
    app.add_routes(served)
    return app


@asynccontextmanager
async def serve_application(
    app: web.Application, guard: AccessGuard, port: int, patience: float = SHUTDOWN_TIMEOUT_S
) -> AsyncIterator[str]:
    """Serve an application on loopback, and yield its root address. Port 0 stands for any free port. At the end, requests in
    flight get `patience` seconds. Raises EndpointError if the port is not available."""
    runner = web.AppRunner(
        app,
        handle_signals=False,
        access_log=None,
        logger=logging.Logger("unheard", logging.CRITICAL),  # no traceback for each malformed request
        auto_decompress=False,
        keepalive_timeout=guard.keep_alive,
        lingering_time=1.0,  # seconds for the rest of a body that was refused
        handler_cancellation=True,
        shutdown_timeout=patience,
    )
    await runner.setup()
    assert runner.server
    try:
        server = await _listen(functools.partial(guard.connection, runner.server), port)
        try:
            yield f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
    finally:
        await runner.cleanup()


async def _listen(connection: Callable[[], asyncio.Protocol], port: int) -> asyncio.Server:
    """Return a server at a port of loopback. Raises EndpointError if the port is not available."""
    try:
        return await asyncio.get_running_loop().create_server(connection, LOOPBACK, port)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be had: {error.strerror}"
        raise EndpointError(f"port {port} at {LOOPBACK} {why}; give another with --port") from error


def routes(current: Callable[[], EndpointSession], model: str = wire.MODEL) -> list[web.RouteDef]:
    """Return the routes of the current session's API. `model` is the name under which the API lists its model."""
    since = int(time())

    def handler_for(dialect: Dialect) -> Handler:
        """Return the handler of requests to a model in this dialect."""

        async def ask(request: web.Request) -> web.StreamResponse:
            """Read the request and respond with the session's replies."""
            session = current()
            subtasks = session.subtasks_at(request.match_info.get("names", ""))
            if subtasks is None:
                raise _unknown_names(request, session)
            body, together = await request.read(), _together(request)
            read = functools.partial(dialect.read, body, session.parameters, session.exchanges)
            chat = await asyncio.to_thread(read) if len(body) > MAX_BYTES_ON_LOOP else read()
            chat = replace(chat, model=model, created=int(time()))
            session.note_set_aside(chat.set_aside)
            return await _Exchange(request, session, dialect, chat).respond(subtasks, together)

        return ask

    async def models(_: web.Request) -> web.StreamResponse:
        entry = {"id": model, "object": "model", "created": since, "owned_by": model}
        return web.json_response({"object": "list", "data": [entry]})

    async def refuse_without_v1(request: web.Request) -> web.StreamResponse:
        """Raise the Problem of an address that names subtasks but lacks /v1."""
        names = request.match_info["names"]
        raise _nothing_at(request, names=f"/{names}" if current().subtasks_at(names) else "")

    azure_roots = (f"{base}/deployments/{{deployment}}" for base in ("/v1", "/openai", "/v1/openai"))
    roots, dialects = ("/v1", "/{names}/v1", *azure_roots), list(DIALECTS)
    return [
        *(web.post(f"{root}{dialect.path}", handler_for(dialect)) for dialect in dialects for root in roots),
        *(web.post(f"/{{names}}{dialect.path}", refuse_without_v1) for dialect in dialects),
        web.get("/v1/models", models),
        web.get("/{names}/v1/models", models),
    ]


def in_openai_style(on_refusal: Callable[[Problem], object]) -> Middleware:
    """Return a middleware that answers a refused request with an error body in OpenAI's form. `on_refusal` gets each refused
    request. It does not get GET requests, which ask no model, nor requests that the guard turned away, which come from no
    measured agent."""

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
        except Exception as bug:  # the trial ends with this bug, which the session has recorded
            return _refusal(Problem(500, f"{type(bug).__name__}: {bug}", "internal_error"), **{SHOULD_RETRY: "false"})
        if request.method != "GET":
            on_refusal(problem)
        return _refusal(problem, **({SHOULD_RETRY: "false"} if problem.status != UNAVAILABLE else {}))

    return in_style


def _together(request: web.Request) -> int | None:
    """Return the number of calls, this call included, that the client makes together; None if the request does not say. Raises
    Problem for a header that is no such number."""
    number = request.headers.get(PARALLEL)
    if number is None:
        return None
    if not (number.isascii() and number.isdecimal()) or len(number) > MAX_NAME_CHARS or not 1 <= int(number) <= MAX_PARALLEL:
        problem = f"give the number of calls made together, 1 to {MAX_PARALLEL}, not '{number[:MAX_NAME_CHARS]}'"
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
    """Return the Problem of an address that names an unknown subtask, or a subtask twice."""
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
    """Return the response that reports a problem."""
    return web.json_response(problem.body, status=problem.status, headers=headers)


@dataclass(frozen=True)
class _Exchange:
    """A valid request that is answered in its dialect."""

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
                self.session.received -= 1  # a refused request does not count
                raise Problem(403, f"{reached}; hand in what you have, or give up", code="attempts_used_up") from reached
        chat = self.chat
        self.session.exchanges[number] = Exchange(chat.messages, chat.instruction_count, chat.options, replies[-1])
        return await self._respond(replies, number)

    async def _respond(self, replies: Sequence[Reply], number: int) -> web.StreamResponse:
        """Send the replies as one document or as events."""
        if not self.chat.stream:
            return web.Response(body=self.dialect.body(replies, number, self.chat), content_type="application/json")
        response = await self._event_stream()
        for event in self.dialect.stream(replies, number, self.chat):
            await response.write(event)
        return response

    async def _event_stream(self) -> web.StreamResponse:
        """Return a response for events whose head has been sent."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(self.request)
        return response

    async def _respond_to_failure(self, failure: CallFailed, number: int) -> web.StreamResponse:
        """Answer a request whose call of the model failed: with part of the reply, a closed connection, or an error."""
        if isinstance(failure, CutOff):
            part = failure.partial_reply if isinstance(failure, CutReply) else Reply(failure.partial)
            response = await (self._cut_stream if self.chat.stream else self._cut_body)(part, number)
            if isinstance(failure, AskerDies):
                failure.die()
            return response
        if isinstance(failure, TimedOut) and failure.injected:
            return hang_up(self.request, web.Response())
        return _failure_response(failure)

    async def _cut_body(self, part: Reply, number: int) -> web.StreamResponse:
        """Send the first bytes of the answer, with a Content-Length of twice as many, and close the connection."""
        beginning = self.dialect.cut_body(part, number, self.chat)
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(2 * len(beginning))})
        await response.prepare(self.request)
        await response.write(beginning)
        return hang_up(self.request, response)

    async def _cut_stream(self, part: Reply, number: int) -> web.StreamResponse:
        """Send the events of a reply that breaks off, and close the connection."""
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
