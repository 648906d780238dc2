"""A trial as a session at the measuring endpoint sees it, and how a session is served."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from bench.answers.formats import AnswerFormat
from bench.models.base import Reply
from bench.runtime.causes import CallLimit, CallPurpose
from bench.runtime.endpoint_session import EndpointSession, Server
from bench.runtime.faults import OpenReceipt
from bench.runtime.injection import Corrupted
from bench.runtime.prompt import Prompt, prompt_of
from bench.runtime.proposal import Proposal
from bench.runtime.trial import Trial
from bench.runtime.verification import Rejected
from bench.scenario import Subtask
from bench.task import names_of

OpenSession = TypeVar("OpenSession", bound=EndpointSession)


class SessionHost:
    """A trial's `bench.runtime.host.Host`."""

    def __init__(self, trial: Trial):
        self._trial = trial

    @property
    def answer_format(self) -> AnswerFormat:
        return self._trial.settings.answer_format

    def next_ask(self, subtasks: Sequence[Subtask], question: Hashable, under_way: bool, limit: CallLimit) -> CallPurpose:
        return self._trial.causes.next(names_of(subtasks), question, inferred=True, limit=limit, under_way=under_way)

    def attempts(self, subtasks: Sequence[Subtask]) -> int:
        return self._trial.causes.attempts(names_of(subtasks))

    def judge_ask(self, subtasks: Sequence[Subtask]) -> CallPurpose:
        return self._trial.causes.judge(names_of(subtasks))

    def prompt(
        self, subtasks: Sequence[Subtask], documents_alone: bool, repair: Rejected | None
    ) -> tuple[Prompt, tuple[OpenReceipt, ...]]:
        trial = self._trial
        sources = trial.state.sources(subtasks) if documents_alone else trial.sources(subtasks)
        if documents_alone:
            sources = tuple(source for source in sources if not source.version)
        inputs = {source.name: trial.state.text_of(source) for source in sources}
        inputs, receipts = trial.injection.read(subtasks, inputs, trial.causes.attempts(names_of(subtasks)) + 1)
        return prompt_of(trial.task, subtasks, inputs, repair, trial.settings.repair, self.answer_format), receipts

    async def foresee(self, proposals: Iterable[Proposal]) -> None:
        await self._trial.foresee(proposals)

    def corrupt(self, reply: Reply, subtasks: Sequence[Subtask], ask: CallPurpose, call: int) -> Corrupted:
        return self._trial.corrupt(reply, subtasks, ask, call)

    def lost(self, ask: CallPurpose, event: int) -> None:
        self._trial.causes.failed(ask.context.subtasks, event)

    def recovered(self, event: int) -> None:
        self._trial.causes.recovered(event)

    def settle(self, subtasks: Sequence[Subtask] | None = None) -> None:
        self._trial.injection.settle(subtasks)


@asynccontextmanager
async def served(trial: Trial, session: OpenSession, server: Server | None = None) -> AsyncIterator[OpenSession]:
    """Serve a session over HTTP until the block has ended, by `server` if one is given.

    If the block raises after the session's last call had failed, GaveUp or that CallFailed is raised instead.
    """
    try:
        async with (server or trial.server)(session) as session.root:
            with trial.caller.elsewhere():
                yield session
    except Exception as error:
        session.explain(error)
        raise
    session.check()
