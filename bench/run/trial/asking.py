"""Ask a model: the half of the workbench that renders, sends and reads, with all the accounting.

The other half checks and writes what comes back (`bench.run.trial.workbench`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from bench.common.digests import case_of, digest_of
from bench.common.errors import nearest
from bench.common.values import dataclass
from bench.record.formats import AnswerFormat
from bench.record.messages import Message
from bench.run.trial.causes import CallPurpose, Causes
from bench.run.trial.prompt import prompt_of
from bench.run.trial.proposal import Proposal
from bench.run.trial.schema import answer_schema
from bench.run.trial.state import NOTHING, Source
from bench.run.trial.trial import Trial
from bench.run.trial.turns import Turns
from bench.run.trial.verification import Rejected
from bench.scenario import Document, Subtask, as_document
from bench.task import names_of


@dataclass(frozen=True)
class LineReply:
    """A reply as an agent gets it.

    text     the reply's text
    finish   how it ended, as OpenAI writes it
    call     the number of its call
    """

    text: str
    finish: str
    call: int


ModelLine = Callable[[Sequence[Message]], Awaitable[LineReply]]
"""An agent's line to the model: messages in, a reply out; the accounting is done behind it."""

Agent = Callable[[Sequence[Message], ModelLine], Awaitable[str | LineReply]]
"""Makes the calls of a proposal, one or several: gets the rendered messages and the line, and returns one of the replies, or a
text made from them."""


async def direct(messages: Sequence[Message], line: ModelLine) -> LineReply:
    """Send the messages once, unchanged: the default agent.

    Args:
        messages: The rendered messages.
        line: The line to the model.

    Returns:
        The reply.
    """
    return await line(messages)


class Asking:
    """The half of the workbench that asks. The workbench is a view of `trial`."""

    def __init__(self, trial: Trial):
        self._trial, self.key = trial, trial.key
        self._state, self._cases, self._causes, self._injection = trial.state, trial.cases, trial.causes, trial.injection

    @property
    def model(self) -> str:
        """Return which version of a model answers: its name, and a digest of its parameters without their recording."""
        model = self._trial.caller.model_in(self._trial.cases.life)
        parameters = {name: value for name, value in model.parameters.items() if name != "recording"}
        return f"{model.name} {digest_of(json.dumps(parameters, sort_keys=True, default=str))}"

    @property
    def max_attempts(self) -> int:
        """Return how often one subtask may be asked for in one trial. Set a framework's own budget to it."""
        return self._trial.settings.max_attempts

    @property
    def answer_format(self) -> AnswerFormat:
        """Return the format in which answers are asked for and read. A framework that renders prompts must ask for it."""
        return self._trial.settings.answer_format

    async def propose(
        self,
        *subtasks: Subtask,
        repair: Rejected | None = None,
        by: Agent = direct,
        planned_by: Subtask | None = None,
        documents: Mapping[str, Document] | None = None,
        task_in_system: bool = False,
    ) -> Proposal:
        """Ask a model for the outputs of one or more subtasks in one call.

        Args:
            subtasks: The subtasks. They share the call, and its attempts.
            repair: The rejection that the model is told of, as the config's `repair` says.
            by: The agent that makes the calls; the default sends the messages once.
            planned_by: The subtask whose plan this follows. The model is not shown it, but the outputs' lineage holds it.
            documents: The state of the world for this call, by the names in `Environment.given`. The same subtask in another
                state is another judgment, with its own attempts.
            task_in_system: Put the instructions and the form of the answer into the system message.

        Returns:
            The proposal, neither verified nor written.

        Raises:
            GaveUp: A subtask's attempts are used up.
            CallFailed: The endpoint cannot be used.
            RuntimeError: Something that the subtasks read has no output yet.
            ValueError: The environment declares no document with such a name.
        """
        given = self._given(documents)
        sources = self._trial.sources(subtasks, given)
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
        """Ask for several samples of the same outputs at the same time, within one attempt.

        Args:
            subtasks: The subtasks.
            count: The number of samples, at least 1.
            repair: The rejection that the model is told of.
            by: The agent that makes the calls of each sample.
            documents: The state of the world for these calls, as in `propose`.

        Returns:
            One proposal for each sample. Samples that are not verified are `redundant` in the ledger.

        Raises:
            GaveUp: A subtask's attempts are used up.
            CallFailed: The endpoint cannot be used.
            RuntimeError: Something that the subtasks read has no output yet.
            ValueError: The environment declares no document with such a name.
        """
        given = self._given(documents)
        sources = self._trial.sources(subtasks, given)
        first = self._next(subtasks, sources, repair, given)
        further = self._cases.of(case_of(given)).further_samples(names_of(subtasks), first, count - 1)
        return tuple(
            await asyncio.gather(*(self._propose(subtasks, more, sources, repair, by, given) for more in (first, *further)))
        )

    def _given(self, documents: Mapping[str, Document] | None) -> Mapping[str, str]:
        """Return the documents of a call as texts. Raises ValueError for a name that the environment does not declare."""
        if not documents:
            return NOTHING
        for name in documents:
            if name not in self._state.given:
                raise ValueError(f"'{name}' is no document that is given with a call; {nearest(name, self._state.given)}")
        return {name: as_document(value) for name, value in documents.items()}

    def _next(
        self,
        subtasks: Sequence[Subtask],
        sources: Sequence[Source],
        repair: Rejected | None,
        given: Mapping[str, str] = NOTHING,
    ) -> CallPurpose:
        causes = self._cases.of(case_of(given))
        if right := self._trial.right:
            seen = {**self._state.documents, **given}
            packs_own = [subtask.name for subtask in subtasks if subtask in self._trial.task.subtasks]
            causes.references.update({name: right(name, seen) for name in packs_own})
        return causes.next(names_of(subtasks), (sources, repair.detail if repair else None))

    async def _propose(
        self,
        subtasks: tuple[Subtask, ...],
        ask: CallPurpose,
        sources: Sequence[Source],
        repair: Rejected | None,
        by: Agent,
        given: Mapping[str, str] = NOTHING,
        task_in_system: bool = False,
    ) -> Proposal:
        self._trial.surroundings.before_call()
        inputs = {
            source.name: given[source.name] if source.name in given else self._state.text_of(source) for source in sources
        }
        inputs, receipts = self._injection.read(subtasks, inputs, ask.context.attempt, ask.context.sample)
        prompt = prompt_of(self._trial.task, subtasks, inputs, repair, self._trial.settings.repair, self.answer_format)
        messages = prompt.messages_with_task_in_system if task_in_system else prompt.messages
        turns = self._trial.turns()
        answer = await by(messages, self._line(subtasks, ask, turns, self._cases.of(case_of(given))))
        self._injection.settle(subtasks, ask.context.sample)
        text, call = (answer, None) if isinstance(answer, str) else (answer.text, answer.call)
        proposal = turns.proposal(text, subtasks, sources, call)
        if given:
            proposal = replace(proposal, documents=given)
        await self._trial.foresee([proposal])
        if not receipts:
            return proposal
        for receipt in receipts:
            receipt.call = proposal.calls[-1]
        return replace(proposal, receipts=(*receipts, *proposal.receipts))

    def _line(self, subtasks: tuple[Subtask, ...], first: CallPurpose, turns: Turns, causes: Causes) -> ModelLine:
        """Return the line for one proposal: its first call is the one asked for, an agent's further calls are further turns."""
        last: CallPurpose | None = None
        names, schema = names_of(subtasks), answer_schema(subtasks)
        questions: list[tuple[Message, ...]] = []

        async def line(messages: Sequence[Message]) -> LineReply:
            nonlocal last
            question = tuple(messages)
            rejected = turns.judge_last(subtasks) if last else None
            last = ask = causes.turn(names, last, question in questions, rejected) if last else first
            questions.append(question)
            causes.asked(names, question)
            received = await self._trial.caller.call(
                messages, ask, schema, lambda reply, call: self._trial.corrupt(reply, subtasks, ask, call)
            )
            turns.add(subtasks, ask, received)
            if self._trial.verifier.takes_long(received.text):
                await self._trial.foresee(turns.to_foresee(subtasks))
            return LineReply(received.text, received.finish, received.call)

        return line
