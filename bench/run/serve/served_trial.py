"""One trial at the server, from the queue to its record. Its stages are:

waiting     earlier trials are in the queue
open        a client can get the trial; its time has not begun
begun       its agent has made a request
submitted   its agent has submitted outputs, or given up
recorded    `record` returns its record
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bench.record.record import TrialRecord
from bench.run.serve.protocol import task_as_json
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.key import TrialKey
from bench.scenario import Task

TrialStage = Literal["waiting", "open", "begun", "submitted", "recorded"]


@dataclass(frozen=True)
class Submission:
    """The end of a trial: the text of each subtask's output, or an exception."""

    outputs: Mapping[str, str] = field(default_factory=dict)
    ending: Exception | None = None


class Changes:
    """Lets tasks wait until a condition holds. Each change wakes all of them to check their conditions."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiting tasks."""
        event, self._next = self._next, asyncio.Event()
        event.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds."""
        while not condition():
            await self._next.wait()


@dataclass(eq=False)
class ServedTrial:
    """A trial that is served. `state` is its stage. `calls` are its calls in flight, which end with the trial."""

    task: Task
    key: TrialKey
    max_attempts: int
    changes: Changes
    state: TrialStage = "waiting"
    calls: set[asyncio.Task[Any]] = field(default_factory=set)
    _asked_for: bool = False
    _session: EndpointSession | None = None
    _submission: Submission | None = None
    _record: TrialRecord | None = None

    @property
    def session(self) -> EndpointSession:
        assert self._session  # set by `open`
        return self._session

    def open(self, session: EndpointSession) -> None:
        self._session = session
        self._enter("open")

    async def note_request(self) -> None:
        """Note a request, and wait until the trial has begun, so that earlier time does not count as the trial's."""
        self._asked_for = True
        self.changes.notify()
        await self.changes.until(lambda: self.state not in ("waiting", "open"))

    async def wait_for_request(self) -> None:
        """Wait until a client has sent a request for this trial."""
        await self.changes.until(lambda: self._asked_for)

    def begin(self) -> None:
        """Start the trial's time."""
        self.session.start_clock()
        self._enter("begun")

    def submit(self, submission: Submission) -> None:
        self._submission = submission
        self._enter("submitted")

    def set_record(self, record: TrialRecord) -> None:
        self._record = record
        self._enter("recorded")

    async def submission(self) -> Submission:
        """Wait for the outputs, or the end, that the agent submits."""
        await self.changes.until(lambda: self._submission is not None)
        assert self._submission
        return self._submission

    async def record(self) -> TrialRecord:
        """Wait for the trial's record."""
        await self.changes.until(lambda: self._record is not None)
        assert self._record
        return self._record

    async def end_calls(self) -> None:
        """Cancel all calls in flight. They count in the account."""
        for call in self.calls:
            call.cancel()
        await asyncio.gather(*self.calls, return_exceptions=True)

    def as_json(self) -> dict[str, Any]:
        """Return the task and the agent's progress as JSON, for an agent that was restarted."""
        progress = {
            "begun": self.state == "begun",
            "calls": self.session.received,
            "refused": self.session.refused,
            "attempts": self.session.attempts(),
            "max_attempts": self.max_attempts,
        }
        return {**task_as_json(self.task, self.key, self.session), **progress}

    def _enter(self, state: TrialStage) -> None:
        self.state = state
        self.changes.notify()
