"""The measuring endpoint: a session served on loopback as an OpenAI-compatible API. What goes wrong on purpose is real HTTP.

    /v1/chat/completions           asks for all of the session's subtasks
    /NAME+NAME/v1/chat/completions asks for these
    /v1/deployments/MODEL/...      the same as /v1/..., as Azure's clients ask it; /openai/deployments/MODEL/... as well
    /v1/responses                  the same in another dialect (`bench.endpoint.dialect`); /NAME+NAME/v1/responses as well
    /v1/models                     one model: the experiment's, whatever name the client sends

    429, 500          with Retry-After where the fault has one
    time-out          nothing comes: after the fault's seconds the connection is dropped
    cut-off           half of the body comes, then the connection is cut
    the model's own   429 as it came; 504 where it took too long; 502 where it failed otherwise
    not recorded      404: a recording holds no reply to this request, and none to its repetition
    refused           400: it asks for what is not passed on; 403: its subtask's attempts are used up; 404: nothing is here
    turned away       401, 403: who asks may not ask here (`bench.endpoint.access_guard`)

The experiment's sampling settings, seed and model name take the place of the client's. What is refused, no model was asked and
nobody paid for; it leaves an event. With a simulated or a recorded
model the model's seconds run on the trial's clock and take no real time; the client, its back-off and its patience are real.
There, a client that makes N calls together says `X-Bench-Parallel: N` on each of them, or its trial ends in an error.
The endpoint works on the trial's own event loop: a framework that blocks belongs into a thread.
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

from bench.endpoint import wire
from bench.endpoint.access_guard import LARGEST_BODY, MOST_CONNECTIONS, AccessGuard, TurnedAway
from bench.endpoint.dialect import CHAT, DIALECTS, Dialect
from bench.endpoint.problem import LONGEST_NAME, Problem
from bench.endpoint.wire import Chat
from bench.errors import BadAnswer, CallFailed, CutOff, EndpointError, GaveUp, NotRecorded, RateLimited, TimedOut, nearest
from bench.models.base import Reply
from bench.runtime.effects import AskerDies, CutReply
from bench.runtime.endpoint_session import PARALLEL, EndpointSession
from bench.scenario import Subtask

LOOPBACK = "127.0.0.1"
LEAVE_AT_ONCE = 0.001
"""Seconds that requests in flight are given when the session ends; aiohttp takes 0 for no bound."""

LONG_BODY = 2**17
"""Bytes of a request from which on it is read in a thread."""
MOST_TOGETHER = MOST_CONNECTIONS
"""Calls: a trial waits until all of them have come."""
UNAVAILABLE = 503
SHOULD_RETRY = "x-should-retry"
"""OpenAI's clients repeat no request whose answer says `false` here: what no repetition can mend."""

OTHER_APIS = ("/embeddings", "/completions", "/images/generations", "/audio/speech")
"""Ends of addresses that an agent may mean to ask at, and that nothing is served at."""


def asks(path: str) -> bool:
    """Tell whether a request to this path asks for a reply, in any dialect."""
    return path.endswith(tuple(dialect.path for dialect in DIALECTS))


@asynccontextmanager
async def serve_session(session: EndpointSession) -> AsyncIterator[str]:
    """Serve a session at a port of its own while the context lasts; a request still in flight at its end is cut short. Who asks
    without the session's API key, a new one each time, is none of its clients."""
    session.api_key = secrets.token_urlsafe(24)
    app = application(
        routes(lambda: session),
        door := AccessGuard(session.api_key),
        lambda problem: session.refuse(problem.status, problem.message),
    )
    async with serving(app, door, 0) as root:
        yield root


def application(
    served: Iterable[web.RouteDef], door: AccessGuard, on_refusal: Callable[[Problem], object], *within: Middleware
) -> web.Application:
    """What is served behind a door; `within` are middlewares that only those meet who were let in."""
    middlewares = [in_openai_style(on_refusal), door.let_in, *within]
    app = web.Application(middlewares=middlewares, client_max_size=LARGEST_BODY)
    app.add_routes(served)
    return app


@asynccontextmanager
async def serving(app: web.Application, door: AccessGuard, port: int, patience: float = LEAVE_AT_ONCE) -> AsyncIterator[str]:
    """Serve an application on loopback, at any free port for 0; opens with its root address. At the end, requests in flight
    are given `patience` seconds. Raises EndpointError where the port cannot be had."""
    runner = web.AppRunner(
        app,
        handle_signals=False,
        access_log=None,
        logger=logging.Logger("unheard", logging.CRITICAL),  # else Python prints a traceback for each request that is no HTTP
        auto_decompress=False,
        keepalive_timeout=door.kept,
        lingering_time=1.0,  # seconds for the rest of a body that was refused
        handler_cancellation=True,
        shutdown_timeout=patience,
    )
    await runner.setup()
    assert runner.server
    try:
        listening = await _listen(functools.partial(door.connection, runner.server), port)
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
    """The API of the current session. `model` is what it says that its model is, which is as old as these routes."""
    since = int(time())

    def asking(dialect: Dialect) -> Handler:
        async def ask(request: web.Request) -> web.StreamResponse:
            session = current()
            subtasks = session.named(request.match_info.get("names", ""))
            if subtasks is None:
                raise _unknown_names(request, session)
            body, together = await request.read(), _together(request)
            read = functools.partial(dialect.read, body, session.parameters)
            asked = await asyncio.to_thread(read) if len(body) > LONG_BODY else read()
            asked = replace(asked, model=model, created=int(time()))
            return await _Exchange(request, session, dialect, asked).answered(subtasks, together)

        return ask

    async def models(_: web.Request) -> web.StreamResponse:
        listed = {"id": model, "object": "model", "created": since, "owned_by": model}
        return web.json_response({"object": "list", "data": [listed]})

    async def astray(request: web.Request) -> web.StreamResponse:
        names = request.match_info["names"]
        raise _nothing_at(request, names=f"/{names}" if current().named(names) else "")

    azures = (f"{base}/deployments/{{deployment}}" for base in ("/v1", "/openai", "/v1/openai"))
    roots, dialects = ("/v1", "/{names}/v1", *azures), list(DIALECTS)
    return [
        *(web.post(f"{root}{dialect.path}", asking(dialect)) for dialect in dialects for root in roots),
        *(web.post(f"/{{names}}{dialect.path}", astray) for dialect in dialects),
        web.get("/v1/models", models),
        web.get("/{names}/v1/models", models),
    ]


def in_openai_style(on_refusal: Callable[[Problem], object]) -> Middleware:
    """A middleware: whatever is refused is refused with an error body as OpenAI writes it. `on_refusal` is told of each request
    that was to bring about something; a GET only looks, as Mellea's does for the version of a server. Of who is turned away it
    is not told: he is none of the agents that are measured."""

    @web.middleware
    async def in_style(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except TurnedAway as stranger:
            return _closing(_refusal(stranger, **{SHOULD_RETRY: "false"}))
        except Problem as refused:
            problem = refused
        except web.HTTPNotFound:
            problem = _nothing_at(request)
        except web.HTTPException as refused:
            problem = Problem(refused.status, f"{request.method} {request.path}: {refused.reason}")
        except Exception as bug:  # the session keeps it, and the trial ends in it
            return _refusal(Problem(500, f"{type(bug).__name__}: {bug}", "internal_error"), **{SHOULD_RETRY: "false"})
        if request.method != "GET":
            on_refusal(problem)
        return _refusal(problem, **({SHOULD_RETRY: "false"} if problem.status != UNAVAILABLE else {}))

    return in_style


def _together(request: web.Request) -> int | None:
    """How many calls, this one among them, are made together; None where it does not say."""
    number = request.headers.get(PARALLEL)
    if number is None:
        return None
    if not (number.isascii() and number.isdecimal()) or len(number) > LONGEST_NAME or not 1 <= int(number) <= MOST_TOGETHER:
        problem = f"give the number of calls made together, 1 to {MOST_TOGETHER}, not '{number[:LONGEST_NAME]}'"
        raise Problem(400, f"{PARALLEL}: {problem}")
    return int(number)


def _nothing_at(request: web.Request, why: str = "", names: str = "") -> Problem:
    """Nothing is here, and what the client may have meant; `names` begin the address of subtasks that it named."""
    path = request.path.rstrip("/")
    if not why and asks(path):
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


def _closing(response: web.StreamResponse) -> web.StreamResponse:
    """The last of its connection."""
    response.force_close()
    return response


def _refusal(problem: Problem, **headers: str) -> web.StreamResponse:
    return web.json_response(problem.body, status=problem.status, headers=headers)


@dataclass(frozen=True)
class _Exchange:
    """A request that is taken, on its way to its answer in a dialect."""

    request: web.Request
    session: EndpointSession
    dialect: Dialect
    asked: Chat

    async def answered(self, subtasks: tuple[Subtask, ...], together: int | None) -> web.StreamResponse:
        replies: list[Reply] = []
        for _ in range(self.asked.replies):
            self.session.received += 1
            number = self.session.received
            try:
                replies.append(await self.session.answer(subtasks, self.asked.messages, together, self.asked.options))
            except CallFailed as failure:
                return await self._failed(failure, number)
            except GaveUp as reached:
                self.session.received -= 1  # it was not taken after all
                raise Problem(403, f"{reached}; hand in what you have, or give up", code="attempts_used_up") from reached
        return await self._given(replies, number)

    async def _given(self, replies: Sequence[Reply], number: int) -> web.StreamResponse:
        if not self.asked.stream:
            return web.Response(body=self.dialect.whole(replies, number, self.asked), content_type="application/json")
        response = await self._event_stream()
        for event in self.dialect.stream(replies, number, self.asked):
            await response.write(event)
        return response

    async def _event_stream(self) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(self.request)
        return response

    async def _failed(self, failure: CallFailed, number: int) -> web.StreamResponse:
        if isinstance(failure, CutOff):
            begun = failure.begun if isinstance(failure, CutReply) else Reply(failure.partial)
            response = await (self._cut_stream if self.asked.stream else self._cut_body)(begun, number)
            if isinstance(failure, AskerDies):
                failure.die()
            return response
        if isinstance(failure, TimedOut) and failure.injected:
            return hung_up(self.request, web.Response())
        return _refused(failure)

    async def _cut_body(self, begun: Reply, number: int) -> web.StreamResponse:
        sent = self.dialect.begun(begun, number, self.asked)
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(2 * len(sent))})
        await response.prepare(self.request)
        await response.write(sent)
        return hung_up(self.request, response)

    async def _cut_stream(self, begun: Reply, number: int) -> web.StreamResponse:
        response = await self._event_stream()
        for chunk in self.dialect.stream_begun(begun, number, self.asked):
            await response.write(chunk)
        return hung_up(self.request, response)


def hung_up(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """Close the connection once what was written is sent; aiohttp then drops what it would still write of the response."""
    if request.transport is not None:
        request.transport.close()
    return response


def _refused(failure: CallFailed) -> web.StreamResponse:
    """The status of a failure."""
    headers = {} if failure.retry_after is None else {"Retry-After": f"{failure.retry_after:g}"}
    if not failure.passing:
        headers[SHOULD_RETRY] = "false"
    return _refusal(_problem_of(failure), **headers)


def _problem_of(failure: CallFailed) -> Problem:
    if isinstance(failure, RateLimited):
        message = "too many requests; try again later" if failure.injected else failure.detail
        return Problem(429, message, "rate_limit_error", code="rate_limit_exceeded")
    if isinstance(failure, TimedOut):
        return Problem(504, failure.detail, "server_error", code=failure.kind)
    if isinstance(failure, NotRecorded):  # a status that no client takes for a passing one
        return Problem(404, failure.detail, code=failure.kind)
    kind = "upstream_error" if isinstance(failure, BadAnswer) else "server_error"
    if failure.injected:
        return Problem(500, "the server failed; try again later", kind, code=failure.kind)
    return Problem(502, failure.detail, kind, code=failure.kind)
