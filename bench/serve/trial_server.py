"""The trial_server at which an outside system, in any language, is given its trials one by one and hands in its answers.

    GET  /trial           the task: its documents, and each subtask's prompt, schema and address; waits for the next trial
    POST /trial/answer    {subtask: output}, JSON or the text of a reply: graded; answers with the trial's account
    POST /trial/give-up   {"reason": "..."}, or nothing: the trial gave up; answers with its account

In between it calls the model at the addresses given, as it would any OpenAI-compatible endpoint. A trial's time begins with the
first request for it. What is handed in is graded as it is: whether to verify, and what to do then, is the system's own affair.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from bench.analysis import ledger
from bench.endpoint.server import Handler, routes
from bench.endpoint.wire import Problem
from bench.errors import GaveUp, Ungraded
from bench.experiment.record import TrialRecord
from bench.models.base import Message
from bench.runtime.endpoint_session import EndpointSession
from bench.runtime.key import TrialKey
from bench.runtime.prompt import render
from bench.runtime.workbench import Workbench
from bench.scenario import Json, Subtask, Task

Handed = Mapping[str, str]
"""Subtask -> the text of its output."""


class Stopped(Exception):
    """The trial_server was closed in the middle of a trial."""


@dataclass
class _Open:
    """The trial at the trial_server. `handed` is what it comes to; `record` what was kept of it."""

    task: Task
    key: TrialKey
    endpoint: EndpointSession
    handed: asyncio.Future[Handed]
    record: asyncio.Future[TrialRecord]
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    flights: set[asyncio.Task[Any]] = field(default_factory=set)


class TrialServer:
    """One trial at a time, whatever the model's concurrency: the addresses are those of the trial that is open.

    root       where it is served
    received   the chat completions asked for so far, by the endpoint's own count
    left       the trials that are not recorded yet
    """

    def __init__(self, graded: bool, left: int):
        self._graded = graded
        self.left = left
        self._turn = asyncio.Lock()
        self._there = asyncio.Event()
        self._open: _Open | None = None
        self.root = ""
        self.received = 0
        self.closed = False

    def routes(self) -> list[web.RouteDef]:
        return [
            *routes(self._endpoint),
            web.get("/trial", self._show),
            web.post("/trial/answer", self._take),
            web.post("/trial/give-up", self._let_go),
        ]

    @web.middleware
    async def follow(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Know each call that is in flight, so that none outlives its trial."""
        trial, flight = self._open, asyncio.current_task()
        if trial is None or flight is None or not request.path.endswith("/chat/completions"):
            return await handler(request)
        trial.flights.add(flight)
        try:
            return await handler(request)
        finally:
            trial.flights.discard(flight)

    async def work(self, task: Task, workbench: Workbench) -> None:
        """The architecture that an outside system is."""
        async with self._turn:
            loop = asyncio.get_running_loop()
            handed: asyncio.Future[Handed] = loop.create_future()

            def server(endpoint: EndpointSession) -> Any:
                return self._hosting(_Open(task, workbench.key, endpoint, handed, loop.create_future()))

            async with workbench.endpoint(*task.subtasks, server=server) as endpoint:
                await asyncio.wait([handed])
                if isinstance(gave_up := handed.exception(), GaveUp):
                    raise gave_up  # in here, where it is known whether the model had failed
            texts = handed.result()
            for subtask in task.subtasks:
                workbench.commit_unverified(endpoint.proposal(texts[subtask.name], subtask))

    @asynccontextmanager
    async def _hosting(self, trial: _Open) -> AsyncIterator[str]:
        """Put a trial on the trial_server; opens when its first request comes, closes when its last call is accounted for."""
        self._open, trial.endpoint.root = trial, self.root
        self._there.set()
        try:
            await trial.begun.wait()
            yield self.root
        finally:
            self._there.clear()
            for flight in trial.flights:
                flight.cancel()
            await asyncio.gather(*trial.flights, return_exceptions=True)
            self.received += trial.endpoint.received

    def saw(self, record: TrialRecord) -> None:
        """A trial was recorded: tell whoever handed it in."""
        self.left -= 1
        if self._open and not self._open.record.done():
            self._open.record.set_result(record)
        self._open = None

    def close(self) -> bool:
        """End the trial that is open; whether there was one that had begun."""
        self.closed = True
        trial = self._open
        if trial is None or not trial.begun.is_set():
            return False
        if not trial.handed.done():
            trial.handed.set_exception(Stopped("the trial_server was closed") if self._graded else self._ungraded(trial))
        return True

    def _ungraded(self, trial: _Open) -> Ungraded:
        return Ungraded(f"{trial.endpoint.received} requests counted")

    def _begun(self) -> _Open:
        if self._open is None or self._open.handed.done():
            raise Problem(503, "no trial is open just now: ask for GET /trial, which waits for the next", "server_error")
        self._open.begun.set()
        return self._open

    def _endpoint(self) -> EndpointSession:
        return self._begun().endpoint

    async def _show(self, _: web.Request) -> web.StreamResponse:
        if not self.left:
            raise Problem(410, "all trials are done")
        await self._there.wait()
        return web.json_response(_shown(self._begun()))

    async def _take(self, request: web.Request) -> web.StreamResponse:
        trial = self._begun()
        handed = _handed(await request.read(), trial) if self._graded else None
        return await self._ended(trial, handed if handed is not None else self._ungraded(trial))

    async def _let_go(self, request: web.Request) -> web.StreamResponse:
        trial = self._begun()
        names = [subtask.name for subtask in trial.task.subtasks]
        gave_up = GaveUp(names, _reason(await request.read()))
        return await self._ended(trial, gave_up if self._graded else self._ungraded(trial))

    async def _ended(self, trial: _Open, how: Handed | Exception) -> web.StreamResponse:
        if trial.handed.done():
            raise Problem(409, "this trial has ended already")
        if isinstance(how, Exception):
            trial.handed.set_exception(how)
        else:
            trial.handed.set_result(how)
        record = await asyncio.shield(trial.record)
        return web.json_response({**account_of(record), "trials_left": self.left})


def account_of(record: TrialRecord) -> dict[str, Any]:
    """What a system is told of its trial: how it ended, and where its tokens and seconds went."""
    entries = ledger.book(record.events)
    grade = record.grade
    return {
        "outcome": record.outcome,
        "reason": record.reason,
        "grade": grade and {"correct": grade.correct, "score": grade.score, "parts": dict(grade.parts), "note": grade.note},
        "calls": len(entries),
        "tokens": record.tokens,
        "retry_tokens": sum(entry.tokens for entry in entries if entry.is_retry),
        "accounts": ledger.totals(entries),
        "api_seconds": record.api_seconds,
        "waiting_seconds": record.waiting_seconds,
        "framework_seconds": record.framework_seconds,
        "timing": record.timing,
    }


def _shown(trial: _Open) -> dict[str, Any]:
    task = trial.task
    return {
        "scenario": trial.key.scenario,
        "repetition": trial.key.repetition,
        "base_url": trial.endpoint.base_url(),
        "role": task.role,
        "documents": dict(task.documents),
        "subtasks": [
            {
                "name": subtask.name,
                "instructions": subtask.instructions,
                "reads": list(subtask.reads),
                "base_url": trial.endpoint.base_url(subtask),
                "messages": [{"role": message.role, "content": message.content} for message in _prompt(task, subtask)],
                "schema": subtask.output.model_json_schema(),
            }
            for subtask in task.subtasks
        ],
    }


def _prompt(task: Task, subtask: Subtask) -> tuple[Message, ...]:
    """Our own prompt, with the documents that the subtask reads; the outputs that it reads are not made yet."""
    inputs = {name: task.documents[name] for name in subtask.reads if name in task.documents}
    return render(task, [subtask], inputs, None, "none")


def _handed(body: bytes, trial: _Open) -> Handed:
    """Read what is handed in. Raises Problem where it is no answer to this task, or not one that the model had a part in."""
    outputs = _object(body)
    names = [subtask.name for subtask in trial.task.subtasks]
    if set(outputs) != set(names):
        raise Problem(400, f"an answer has one output for each of {', '.join(names)}; this has {', '.join(outputs) or 'none'}")
    unasked = [name for name in names if not trial.endpoint.answered(name)]
    if unasked:
        raise Problem(
            409, f"no reply was ever given for {', '.join(unasked)}; ask at {trial.endpoint.base_url()} for all subtasks"
        )
    return {name: output if isinstance(output, str) else json.dumps(output) for name, output in outputs.items()}


def _reason(body: bytes) -> str:
    return str(_object(body).get("reason") or "the system gave up") if body.strip() else "the system gave up"


def _object(body: bytes) -> dict[str, Json]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Problem(400, "the body is no JSON") from None
    if not isinstance(value, dict):
        raise Problem(400, "the body is no JSON object")
    return value
