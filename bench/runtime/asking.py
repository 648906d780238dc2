"""Asking a model: the half of the workbench that renders, sends, and reads what comes back, with all the accounting behind it.
What is then held against the schemas and written to the state is the other half's (`bench.runtime.workbench`)."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from bench.answers.formats import DEFAULT, AnswerFormat
from bench.digests import case_of, digest_of
from bench.errors import nearest
from bench.models.base import Message, Reply
from bench.runtime.caller import Caller
from bench.runtime.cases import Cases
from bench.runtime.causes import Ask, Causes
from bench.runtime.checks import Checks
from bench.runtime.drafts import THINK, Tags
from bench.runtime.injection import Corrupted, Injection
from bench.runtime.judging import Verifier
from bench.runtime.key import TrialKey
from bench.runtime.log import TrialLog
from bench.runtime.prompt import Repair, prompt_of
from bench.runtime.proposal import Proposal
from bench.runtime.reading import read_ahead
from bench.runtime.reply import reread
from bench.runtime.schema import answer_schema
from bench.runtime.state import NOTHING, Source, State
from bench.runtime.turns import Turns
from bench.runtime.verification import Rejected
from bench.scenario import Subtask
from bench.values import dataclass
from bench.worlds.environment.documents import as_document
from bench.worlds.runtime.hands import Hands


@dataclass(frozen=True)
class LineReply:
    """A reply as an agent gets it, with the number of the call that it came from."""

    text: str
    finish: str
    call: int


Line = Callable[[Sequence[Message]], Awaitable[LineReply]]
"""The line to the model that an agent is given: messages in, a reply out, all the accounting behind it."""

Document = str | BaseModel | Mapping[str, Any]
"""The state of the world, as a text, or as a tool returned it."""
Agent = Callable[[Sequence[Message], Line], Awaitable[str | LineReply]]
"""Who conducts the calls of a proposal, one or several: given the rendered messages and the line, it returns one of the
replies, or a text that it made of them."""


async def direct(messages: Sequence[Message], line: Line) -> LineReply:
    """The agent that sends the messages as they are, once."""
    return await line(messages)


@dataclass(frozen=True)
class Settings:
    """What an experiment decides for all its trials. `max_attempts` bounds the attempts at one subtask in one trial;
    `answer_format` and `tags`, in which a model puts its drafts, are the same for all architectures that it works in."""

    max_attempts: int = 3
    repair: Repair = "reason"
    answer_format: AnswerFormat = DEFAULT
    tags: Tags = THINK


class Asking(Hands):
    def __init__(
        self,
        state: State,
        key: TrialKey,
        settings: Settings,
        caller: Caller,
        injection: Injection,
        log: TrialLog,
        checks: Checks | None = None,
    ):
        self._state, self._settings, self._caller, self._injection = state, settings, caller, injection
        self._cases = Cases(lambda: Causes(key, log, settings.max_attempts, caller.model, settings.answer_format))
        self._causes = self._cases.of("")
        caller.read_ahead = functools.partial(read_ahead, answer_format=settings.answer_format, tags=settings.tags)
        self._checks = checks or Checks(state)
        self._verifier = Verifier(state, self._cases, log, self._checks)
        self.key = key

    @property
    def model(self) -> str:
        """Which model answers: its name, and a digest of all that it is asked with, which tells its versions apart."""
        return f"{self._caller.model} {digest_of(json.dumps(self._caller.parameters, sort_keys=True, default=str))}"

    @property
    def max_attempts(self) -> int:
        """How often one subtask may be asked for in one trial; a framework's own budget is to be set to it."""
        return self._settings.max_attempts

    @property
    def answer_format(self) -> AnswerFormat:
        """In which form answers are asked for, and read; a framework that renders prompts of its own is to ask for it."""
        return self._settings.answer_format

    async def propose(
        self,
        *subtasks: Subtask,
        repair: Rejected | None = None,
        by: Agent = direct,
        planned_by: Subtask | None = None,
        documents: Mapping[str, Document] | None = None,
        task_in_system: bool = False,
    ) -> Proposal:
        """Ask a model for these subtasks' outputs. `repair` is told to it as the repair setting says. What is asked because a
        subtask planned it is `planned_by` it: the plan is not shown to the model, and is in the lineage of the outputs.
        `documents` show the state of the world to this call, by the names in `Environment.given`; what a tool returned is
        rendered in one way for all. The same subtask on another state is another judgment, with attempts of its own.
        `task_in_system` puts the instructions and the form of the answer into the system message.

        Raises GaveUp where a subtask's attempts are used up, CallFailed where the endpoint cannot be used, RuntimeError where
        something that they read has no output yet.
        """
        given = self._given(documents)
        sources = self._sources(subtasks, given)
        plan = [self._state.source(planned_by.name)] if planned_by else []
        asked = self._next(subtasks, sources, repair, given)
        proposal = await self._propose(subtasks, asked, sources, repair, by, given, task_in_system)
        return replace(proposal, made_from=(*proposal.made_from, *plan)) if plan else proposal

    async def sample(
        self,
        *subtasks: Subtask,
        count: int,
        repair: Rejected | None = None,
        by: Agent = direct,
        documents: Mapping[str, Document] | None = None,
    ) -> tuple[Proposal, ...]:
        """So many samples of these subtasks' outputs, asked for at the same time, within one attempt. Takes `documents`, and
        raises, as `propose`."""
        given = self._given(documents)
        sources = self._sources(subtasks, given)
        first = self._next(subtasks, sources, repair, given)
        further = self._cases.of(case_of(given)).further_samples(names_of(subtasks), first, count - 1)
        return tuple(
            await asyncio.gather(*(self._propose(subtasks, one, sources, repair, by, given) for one in (first, *further)))
        )

    async def foresee(self, proposals: Iterable[Proposal]) -> None:
        """Have the checks that may take long asked of proposals off the event loop; also of what a fault in the state will make
        of them."""
        for proposal in (one for one in proposals if self._verifier.takes_long(one.text)):
            await self._verifier.foresee(proposal)
            struck = {}
            for subtask in proposal.subtasks:
                part = proposal.parts.get(subtask.name)
                if part and (text := self._injection.foreseen(subtask, part, proposal.attempt)) != part.text:
                    struck[subtask.name] = reread(text)
            if struck:
                await self._verifier.foresee(replace(proposal, parts={**proposal.parts, **struck}, undamaged={}))

    def corrupt(self, reply: Reply, subtasks: Sequence[Subtask], ask: Ask, call: int) -> Corrupted:
        return self._injection.corrupt(reply, subtasks, ask.context, call)

    def _given(self, documents: Mapping[str, Document] | None) -> Mapping[str, str]:
        """The documents that come with a call, as texts. Raises ValueError for a name that the environment does not declare."""
        for name in documents or ():
            if name not in self._state.given:
                raise ValueError(f"'{name}' is no document that is given with a call; {nearest(name, self._state.given)}")
        return {name: as_document(value) for name, value in (documents or {}).items()}

    def _sources(self, subtasks: Sequence[Subtask], given: Mapping[str, str] = NOTHING) -> tuple[Source, ...]:
        """What these subtasks are about to read. Raises RuntimeError where something of it has no output yet."""
        self._refuse_early(subtasks, given)
        return self._state.sources(subtasks, given)

    def _next(
        self,
        subtasks: Sequence[Subtask],
        sources: Sequence[Source],
        repair: Rejected | None,
        given: Mapping[str, str] = NOTHING,
    ) -> Ask:
        causes = self._cases.of(case_of(given))
        if self.acting and (right := self.acting.world.environment.right):
            seen = {**self._state.documents, **given}
            causes.references.update({one.name: right(one.name, seen) for one in subtasks})
        return causes.next(names_of(subtasks), (sources, repair.detail if repair else None))

    async def _propose(
        self,
        subtasks: tuple[Subtask, ...],
        ask: Ask,
        sources: Sequence[Source],
        repair: Rejected | None,
        by: Agent,
        given: Mapping[str, str] = NOTHING,
        task_in_system: bool = False,
    ) -> Proposal:
        if self.acting:
            self.acting.process.step()
        inputs = {one.name: given[one.name] if one.name in given else self._state.text_of(one) for one in sources}
        inputs, receipts = self._injection.read(subtasks, inputs, ask.context.attempt, ask.context.sample)
        prompt = prompt_of(self._state.task, subtasks, inputs, repair, self._settings.repair, self.answer_format)
        messages = prompt.messages_with_task_in_system if task_in_system else prompt.messages
        turns = self._turns()
        answer = await by(messages, self._line(subtasks, ask, turns, self._cases.of(case_of(given))))
        self._injection.settle(subtasks, ask.context.sample)
        text, call = (answer, None) if isinstance(answer, str) else (answer.text, answer.call)
        proposal = turns.proposal(text, subtasks, sources, call)
        if given:
            proposal = replace(proposal, documents=given)
        await self.foresee([proposal])
        if not receipts:
            return proposal
        for receipt in receipts:
            receipt.call = proposal.calls[-1]
        return replace(proposal, receipts=(*receipts, *proposal.receipts))

    def _turns(self) -> Turns:
        return Turns(self._state, self._verifier, self._settings.answer_format, self._settings.tags)

    def _line(self, subtasks: tuple[Subtask, ...], first: Ask, turns: Turns, causes: Causes) -> Line:
        """The line for one proposal: its first call is the one that was asked for, what an agent adds are its further turns."""
        last: Ask | None = None
        schema = answer_schema(subtasks)
        questions: set[tuple[Message, ...]] = set()

        async def line(messages: Sequence[Message]) -> LineReply:
            nonlocal last
            question = tuple(messages)
            rejected = turns.judge_last(subtasks) if last else None
            last = ask = causes.turn(names_of(subtasks), last, question in questions, rejected) if last else first
            questions.add(question)
            causes.asked(names_of(subtasks), question)
            received = await self._caller.call(
                messages, ask, schema, lambda reply, call: self.corrupt(reply, subtasks, ask, call)
            )
            turns.add(subtasks, ask, received)
            await self.foresee(turns.to_foresee(subtasks))
            return LineReply(received.text, received.finish, received.call)

        return line

    def _refuse_early(self, subtasks: Sequence[Subtask], given: Mapping[str, str]) -> None:
        """A prompt that lacks an input would be another one than the pack's, and nobody would notice."""
        joint = set(names_of(subtasks))
        for subtask in subtasks:
            if missing := [name for name in self._state.lacks(subtask, given) if name not in joint]:
                if missing[0] in self._state.given:
                    raise RuntimeError(f"'{subtask.name}' reads '{missing[0]}'; give it: propose(..., documents=...)")
                raise RuntimeError(f"'{subtask.name}' is asked for before '{missing[0]}', which it reads, has an output")


def names_of(subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    return tuple(subtask.name for subtask in subtasks)
