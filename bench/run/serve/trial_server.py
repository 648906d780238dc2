"""A server that gives an outside system, in any language, its trials one by one and accepts its answers.

    GET  /trial           the task: its documents, and each subtask's prompt, schema and address; waits for the next trial
    POST /trial/answer    {subtask: output}, JSON or the text of a reply: graded; answers with the trial's account
    POST /trial/give-up   {"reason": "..."}, or nothing: the trial gave up; answers with its account

Between these requests the system calls the model at the given addresses, like any OpenAI-compatible endpoint. A trial's time
begins with the first request that is not a GET. Answers are graded as they are: the system itself decides whether to verify
them, and what to do after a rejection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from bench.common.errors import GaveUp, Ungraded
from bench.record.record import TrialRecord
from bench.run.endpoint.server import asks_for_reply, routes
from bench.run.serve.account import account_of
from bench.run.serve.protocol import outputs_of, reason_of
from bench.run.serve.served_trial import Changes, ServedTrial, Submission
from bench.run.trial.causes import CallLimit
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.wire.problem import Problem


class Stopped(Exception):
    """The server was closed during a trial."""


class TrialServer:
    """A queue of trials. Only the first trial is open, whatever the model's concurrency, since the addresses lead to the open
    trial.

    root       the server's address
    received   the number of chat completions that were requested so far, as the endpoint counts them
    refusals   the reason of each refused request, with or without an open trial
    left       the number of trials that are not recorded yet
    deserted   whether no client asked for the next trial any more
    """

    def __init__(self, graded: bool, left: int):
        self._graded = graded
        self.left = left
        self._changes = Changes()
        self._queue: deque[ServedTrial] = deque()
        self._requests_in_progress = 0
        self._last_request_time: float | None = None
        self.root = ""
        self.received = 0
        self.refusals: list[str] = []
        self.closed = self.deserted = self._done_is_seen = False

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the model's endpoint and of the trials."""
        return [
            *routes(lambda: self._open_or_refuse().session),
            web.get("/trial", self._show),
            web.post("/trial/answer", self._take),
            web.post("/trial/give-up", self._give_up),
        ]

    @web.middleware
    async def track_request(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Handle a request. The server notes when the last request ended, and the open trial notes its calls while they run, so
        that a call ends with its trial."""
        trial, task = self._open, asyncio.current_task()
        self._requests_in_progress += 1
        calls = trial.calls if trial and asks_for_reply(request.path) else set()
        try:
            if trial and request.method != "GET":
                await trial.note_request()
            if task:
                calls.add(task)
            return await handler(request)
        finally:
            calls.discard(task)
            self._requests_in_progress -= 1
            self._last_request_time = asyncio.get_running_loop().time()

    def note_refusal(self, problem: Problem) -> None:
        """Note a refused request, and log it in the open trial if that trial has begun."""
        self.refusals.append(f"{problem.status}: {problem.message}")
        if self._open and self._open.state == "begun":
            self._open.session.log_refusal(problem.status, problem.message)

    async def work(self, task: Task, workbench: Workbench) -> None:
        """Work on a task in place of an architecture: serve it to the outside system."""
        trial = ServedTrial(task, workbench.key, workbench.max_attempts, self._changes)
        self._queue.append(trial)
        await self._changes.until(lambda: self._queue[0] is trial)

        def server(session: EndpointSession) -> Any:
            return self._open_trial(trial, session)

        limit: CallLimit = "attempts" if self._graded else "none"
        async with workbench.endpoint(*task.subtasks, server=server, limit=limit, judged=self._graded) as session:
            trial.begin()
            submission = await trial.submission()
            if isinstance(submission.ending, GaveUp):
                async for _ in session.submit({}):
                    pass
                raise submission.ending  # within the block, which raises the model's failure instead, if there was one
        if submission.ending:
            raise submission.ending
        async for proposal in session.submit(submission.outputs):
            workbench.commit_unverified(proposal)

    def set_record(self, record: TrialRecord) -> None:
        """Give the record to the client that ended the trial, and open the next trial."""
        self.left -= 1
        self._queue.popleft().set_record(record)

    def close(self) -> bool:
        """End the open trial. Return whether there was an open trial that had begun."""
        self.closed = True
        trial = self._open
        if trial is None or trial.state != "begun":
            return False
        trial.submit(Submission(ending=Stopped("the server was closed") if self._graded else self._ungraded_answer(trial)))
        return True

    async def watch(self, patience: float) -> None:
        """Give up each trial that has begun and had no request for `patience` seconds. Return if nobody asks for the next trial
        either. The first request of all is awaited without limit."""
        while not self.deserted:
            await asyncio.sleep(self._patience_left(patience))
            if self._patience_left(patience) > 0:
                continue
            trial = self._open
            if trial and trial.state == "begun":
                trial.submit(self._give_up_submission(trial, f"no request came for {patience:g} s"))
            self.deserted = trial is not None and trial.state == "open"
            self._last_request_time = asyncio.get_running_loop().time()

    async def until_done_is_seen(self) -> None:
        """Wait until a client has been told that all trials are done."""
        await self._changes.until(lambda: self._done_is_seen)

    @property
    def _open(self) -> ServedTrial | None:
        """The first trial of the queue, if it has its session; else None."""
        return self._queue[0] if self._queue and self._queue[0].state != "waiting" else None

    @asynccontextmanager
    async def _open_trial(self, trial: ServedTrial, session: EndpointSession) -> AsyncIterator[str]:
        """Open a trial while the block runs. Its time begins with its first request and ends when its last call is accounted
        for."""
        session.root = self.root
        trial.open(session)
        try:
            await trial.wait_for_request()
            yield self.root
        finally:
            await trial.end_calls()
            session.log_set_aside()
            self.received += session.received

    def _patience_left(self, patience: float) -> float:
        """Return the seconds of `patience` that are left since the last request; all of them while a request is in progress,
        and before the first request."""
        if self._requests_in_progress or self._last_request_time is None:
            return patience
        return self._last_request_time + patience - asyncio.get_running_loop().time()

    def _ungraded_answer(self, trial: ServedTrial) -> Ungraded:
        return Ungraded(f"{trial.session.received} requests counted")

    def _give_up_submission(self, trial: ServedTrial, reason: str) -> Submission:
        names = [subtask.name for subtask in trial.task.subtasks]
        return Submission(ending=GaveUp(names, reason) if self._graded else self._ungraded_answer(trial))

    def _open_or_refuse(self) -> ServedTrial:
        """Return the trial that is open or has begun. Raises Problem if there is none."""
        trial = self._open
        if trial is None or trial.state not in ("open", "begun"):
            raise Problem(503, "no trial is open just now: ask for GET /trial, which waits for the next", "server_error")
        return trial

    async def _show(self, _: web.Request) -> web.StreamResponse:
        """Respond with the open trial, once there is one. Raises Problem if all trials are done."""
        await self._changes.until(lambda: not self.left or self._is_showing())
        if not self.left:
            self._done_is_seen = True
            self._changes.notify()
            raise Problem(410, "all trials are done")
        return web.json_response(self._open_or_refuse().as_json())

    def _is_showing(self) -> bool:
        return self._open is not None and self._open.state in ("open", "begun")

    async def _take(self, request: web.Request) -> web.StreamResponse:
        """Take the system's answer, and respond with the trial's account."""
        trial, body = self._open_or_refuse(), await request.read()
        if not self._graded:
            return await self._end_response(trial, Submission(ending=self._ungraded_answer(trial)))
        return await self._end_response(trial, Submission(outputs_of(body, trial.task, trial.session)))

    async def _give_up(self, request: web.Request) -> web.StreamResponse:
        """End the trial because the system gives up, and respond with the trial's account."""
        trial, body = self._open_or_refuse(), await request.read()
        return await self._end_response(trial, self._give_up_submission(trial, reason_of(body)))

    async def _end_response(self, trial: ServedTrial, submission: Submission) -> web.StreamResponse:
        """End the trial with this submission, and respond with its account. Raises Problem if it has ended already."""
        if trial.state != "begun":
            raise Problem(409, "this trial has ended already")
        trial.submit(submission)
        record = await trial.record()
        return web.json_response({**account_of(record), "trials_left": self.left})


async def no_architecture(*_: object) -> None:
    """Raise AssertionError: an outside system has no function that works on a task in this process."""
    raise AssertionError("an outside system works at a trial_server")
