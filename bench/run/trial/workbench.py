"""The workbench: the interface through which an architecture works.

It renders prompts, asks models, injects faults, verifies, commits and logs.

    propose            ask a model for the outputs of one or more subtasks
    sample             ask for several samples of them at the same time
    endpoint           let a framework make its own calls, through a measuring endpoint
    verify             check a proposal against schemas and checks: the first Rejected, or None
    commit             write a verified proposal to the state
    commit_unverified  write a proposal as it came; `checkpoint` verifies it later
    skip, invalidate   commit an unneeded output without a model; take back an output that a validating subtask found wrong
    ready, add         the subtasks that can be asked now; add a subtask at run time
    output             the state's output of a subtask
    world              what can be done in the task's world, if it has one

An architecture decides only when a failure is detected and what is run again, so it is short. All proposals can run at the same
time: `asyncio.gather` over proposals for ready subtasks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bench.common.digests import case_of, digest_of
from bench.common.errors import GaveUp, nearest
from bench.common.values import dataclass
from bench.record.formats import AnswerFormat
from bench.record.messages import Message
from bench.run.trial import verification
from bench.run.trial.causes import CallLimit, CallPurpose, Causes
from bench.run.trial.effects import dump
from bench.run.trial.endpoint_session import EndpointSession, IsJudging, never
from bench.run.trial.prompt import prompt_of
from bench.run.trial.proposal import Proposal
from bench.run.trial.reply import ReplyPart
from bench.run.trial.schema import answer_schema
from bench.run.trial.state import NO_DOCUMENTS, Source
from bench.run.trial.trial import Server, Trial
from bench.run.trial.turns import Turns
from bench.run.trial.verification import Rejected
from bench.scenario import Document, Json, Output, Subtask, as_document
from bench.task import names_of


@dataclass(frozen=True)
class LineReply:
    """A reply as an agent gets it through its line to the model.

    text     the reply's text
    finish   how it ended, as OpenAI writes it
    call     the number of its call
    """

    text: str
    finish: str
    call: int


ModelLine = Callable[[Sequence[Message]], Awaitable[LineReply]]
"""An agent's line to the model: it takes messages and returns a reply, and counts the call."""

Agent = Callable[[Sequence[Message], ModelLine], Awaitable[str | LineReply]]
"""Makes the one or several calls of a proposal. It gets the rendered messages and the line, and returns one of the replies, or
a text made from the replies."""


async def direct(messages: Sequence[Message], line: ModelLine) -> LineReply:
    """Send the messages once, unchanged. This is the default agent.

    Args:
        messages: The rendered messages.
        line: The line to the model.

    Returns:
        The reply.
    """
    return await line(messages)


class Workbench:
    """The interface of a trial to its architecture."""

    def __init__(self, trial: Trial):
        self._trial, self.key = trial, trial.key
        self._state, self._cases, self._causes, self._injection = trial.state, trial.cases, trial.causes, trial.injection

    @property
    def model(self) -> str:
        """Return the version of the model that answers: its name, and a digest of its parameters without their recording."""
        model = self._trial.caller.model_in(self._trial.cases.life)
        parameters = {name: value for name, value in model.parameters.items() if name != "recording"}
        return f"{model.name} {digest_of(json.dumps(parameters, sort_keys=True, default=str))}"

    @property
    def max_attempts(self) -> int:
        """Return how often one subtask may be asked for in one trial. Set a framework's own budget to this number."""
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
            planned_by: The subtask whose output planned these subtasks. The model does not see this output, but the proposal
                counts as made from it.
            documents: The state of the world for this call, by the names in `Environment.given`. The same subtask in another
                state is another judgment, with its own attempts.
            task_in_system: Put the instructions and the form of the answer into the system message.

        Returns:
            The proposal, neither verified nor written.

        Raises:
            GaveUp: A subtask's attempts are used up.
            CallFailed: The endpoint cannot be used.
            RuntimeError: Something that the subtasks read has no output yet.
            ValueError: The environment declares no document of a name in `documents`.
        """
        given = self._given_texts(documents)
        sources = self._trial.sources(subtasks, given)
        plan = [self._state.source(planned_by.name)] if planned_by else []
        purpose = self._next_purpose(subtasks, sources, repair, given)
        proposal = await self._propose(subtasks, purpose, sources, repair, by, given, task_in_system)
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
            ValueError: The environment declares no document of a name in `documents`.
        """
        given = self._given_texts(documents)
        sources = self._trial.sources(subtasks, given)
        first = self._next_purpose(subtasks, sources, repair, given)
        further = self._cases.of(case_of(given)).further_samples(names_of(subtasks), first, count - 1)
        return tuple(
            await asyncio.gather(
                *(self._propose(subtasks, purpose, sources, repair, by, given) for purpose in (first, *further))
            )
        )

    @property
    def world(self) -> Any:
        """Return the actions that the task's world allows.

        It is a `bench.worlds.run.runtime.actions.WorldActions`.

        Raises:
            RuntimeError: The scenario has no world.
        """
        if self._trial.surroundings.actions is None:
            raise RuntimeError("this scenario has no world; run the architecture on a pack that declares an environment")
        return self._trial.surroundings.actions

    def attempts_left(self, *subtasks: Subtask) -> int:
        """Return how often a framework may still ask for these subtasks in this trial, at least 1.

        Args:
            subtasks: The subtasks of one call. They share their attempts.

        Returns:
            The number of attempts that are left.

        Raises:
            GaveUp: No attempt is left.
        """
        names = names_of(subtasks)
        left = self.max_attempts - self._causes.attempts(names)
        if left < 1:
            raise GaveUp(names, f"no accepted output in {self.max_attempts} attempts")
        return left

    def done(self, subtask: Subtask) -> bool:
        """Return whether the state holds an output of a subtask: the completion signal.

        Args:
            subtask: A subtask of the task, or one that was added.

        Returns:
            True if it does, verified or not.
        """
        return subtask.name in self._state

    def ready(self) -> tuple[Subtask, ...]:
        """Return the subtasks that can be asked for now.

        Returns:
            Those that are not done and whose inputs are all there, in the task's order.
        """
        return self._state.ready

    def add(self, subtask: Subtask, reference: Json = None) -> None:
        """Add a subtask at run time. The answer consists only of the task's own subtasks (`Task.answer`).

        Args:
            subtask: The new subtask.
            reference: The JSON with which a simulated model answers it; None for the smallest output that fits its schema.

        Raises:
            ValueError: Its name is taken, or something that it reads does not exist.
        """
        self._trial.add(subtask, reference)

    def output(self, subtask: Subtask) -> Output | None:
        """Return the output of a subtask in the state.

        Args:
            subtask: A subtask of the task, or one that was added.

        Returns:
            The output; None if there is none, or if it does not fit its schema.
        """
        return self._trial.verifier.outputs([subtask.name]).get(subtask.name)

    @asynccontextmanager
    async def endpoint(
        self,
        *subtasks: Subtask,
        judges: IsJudging = never,
        server: Server | None = None,
        limit: CallLimit = "calls",
        judged: bool = True,
    ) -> AsyncIterator[EndpointSession]:
        """Let a framework make the calls for these subtasks itself, over HTTP.

        `EndpointSession.proposal` then proposes what the framework returns. It is verified and committed like any other
        proposal.

        Args:
            subtasks: The subtasks that the calls are for.
            judges: Recognizes a judge's call by its messages.
            server: Serves the session instead of a server at its own port.
            limit: The limit on the calls for a subtask.
            judged: Whether its replies are verified in shadow, without telling the framework.

        Yields:
            The session, with `base_url()` and `api_key` for the framework.

        Raises:
            GaveUp: The framework ended with an exception after the attempts were used up.
            CallFailed: The framework ended with an exception after its last call had failed.
        """
        session = EndpointSession(subtasks, self._trial, judges, limit, judged)
        async with session.serve(server):
            yield session

    def verify(self, proposal: Proposal, sufficiency: bool = False) -> Rejected | None:
        """Check each part of a proposal against its schema, its checks and the findings of a validating part.

        A verdict is logged for each part.

        Args:
            proposal: The proposal.
            sufficiency: Also ask whether each output is strong enough to build on.

        Returns:
            The first rejection, with the reply; None if all parts are accepted.
        """
        rejected = self._trial.verifier.verify(proposal, sufficiency)
        (self._trial.accepted.discard if rejected else self._trial.accepted.add)(proposal)
        return rejected

    def reject(self, proposal: Proposal, detail: str) -> None:
        """Log that a framework rejected a proposal by its own judgment.

        Args:
            proposal: The rejected proposal.
            detail: Why, in one line.
        """
        self._trial.accepted.discard(proposal)
        for subtask in proposal.subtasks:
            rejected = Rejected(subtask.name, "check", detail)
            self._trial.verifier.log_verdict(subtask.name, proposal.calls, rejected, proposal.receipts)

    def commit(self, proposal: Proposal) -> None:
        """Write a verified proposal to the state.

        Args:
            proposal: A proposal that `verify` accepted.

        Raises:
            RuntimeError: It was not verified, or was rejected.
        """
        if proposal not in self._trial.accepted:
            names = " + ".join(proposal.names)
            raise RuntimeError(f"commit of '{names}', which was not verified or was rejected; verify it, or commit_unverified")
        self._trial.write(proposal, verified=True)

    def commit_unverified(self, proposal: Proposal) -> None:
        """Write a proposal to the state without verifying it: later subtasks read it unverified.

        Args:
            proposal: A proposal; `checkpoint` can verify it later.
        """
        self._trial.write(proposal, verified=False)

    def checkpoint(self, stage: Sequence[Subtask]) -> Rejected | None:
        """Verify together the outputs that `commit_unverified` wrote to the state. If all are accepted, log each as verified.

        Args:
            stage: Subtasks whose outputs were committed unverified, in the task's order.

        Returns:
            The first rejection; None if all are accepted.
        """
        rejected = self._trial.verifier.verify_stage(stage)
        if rejected is None:
            for subtask in stage:
                self._trial.log_commit(self._trial.verifier.version(subtask.name), verified=True)
        return rejected

    def skip(self, subtask: Subtask) -> bool:
        """Commit the output of a subtask that earlier outputs make unnecessary, without asking a model.

        Args:
            subtask: A subtask that can be asked now.

        Returns:
            True if the subtask is unnecessary and its output is committed.
        """
        if subtask.skip is None:
            return False
        read = [name for name in subtask.reads if name not in self._state.documents]
        outputs = self._trial.verifier.outputs(read)
        output = self._trial.checks.skipped_output(subtask, outputs) if len(outputs) == len(read) else None
        if output is None:
            return False
        value = output.model_dump(mode="json")
        version = self._state.put(subtask.name, ReplyPart(dump(value), value), (), self._state.sources([subtask]))
        self._trial.log_commit(version, verified=True)
        return True

    def finding(self, subtask: Subtask) -> Rejected | None:
        """Return what a subtask's committed output finds wrong with an earlier subtask's output.

        Args:
            subtask: A subtask that can find an earlier output wrong (`Subtask.finds`).

        Returns:
            The rejection of the earlier output; None if it finds nothing wrong.
        """
        output = self.output(subtask) if subtask.finds else None
        rejected = verification.finding(subtask, output) if output else None
        return replace(rejected, reply=self._trial.verifier.version(rejected.subtask).text) if rejected else None

    def invalidate(self, rejected: Rejected) -> None:
        """Remove an output that was found wrong, and all outputs that were made from it.

        Args:
            rejected: The rejection, as `finding` gives it.
        """
        verifier = self._trial.verifier
        version, receipts = verifier.version(rejected.subtask), verifier.receipts_by_output.get(rejected.subtask, ())
        verifier.log_verdict(rejected.subtask, version.calls, rejected, receipts)
        self._state.withdraw(rejected.subtask)

    def _given_texts(self, documents: Mapping[str, Document] | None) -> Mapping[str, str]:
        """Return the documents of a call as texts. Raises ValueError for a name that the environment does not declare."""
        if not documents:
            return NO_DOCUMENTS
        for name in documents:
            if name not in self._state.given:
                raise ValueError(f"'{name}' is no document that is given with a call; {nearest(name, self._state.given)}")
        return {name: as_document(value) for name, value in documents.items()}

    def _next_purpose(
        self,
        subtasks: Sequence[Subtask],
        sources: Sequence[Source],
        repair: Rejected | None,
        given: Mapping[str, str] = NO_DOCUMENTS,
    ) -> CallPurpose:
        """Return the purpose of the next call for these subtasks in the state of the world that `given` holds."""
        causes = self._cases.of(case_of(given))
        if right := self._trial.right:
            documents = {**self._state.documents, **given}
            task_subtasks = [subtask.name for subtask in subtasks if subtask in self._trial.task.subtasks]
            causes.references.update({name: right(name, documents) for name in task_subtasks})
        return causes.next_purpose(names_of(subtasks), (sources, repair.detail if repair else None))

    async def _propose(
        self,
        subtasks: tuple[Subtask, ...],
        purpose: CallPurpose,
        sources: Sequence[Source],
        repair: Rejected | None,
        by: Agent,
        given: Mapping[str, str] = NO_DOCUMENTS,
        task_in_system: bool = False,
    ) -> Proposal:
        """Ask the agent `by` for the outputs of the subtasks in one call and return the proposal."""
        self._trial.surroundings.before_call()
        inputs = {
            source.name: given[source.name] if source.name in given else self._state.text_of(source) for source in sources
        }
        inputs, receipts = self._injection.strike_inputs(subtasks, inputs, purpose.context.attempt, purpose.context.sample)
        prompt = prompt_of(self._trial.task, subtasks, inputs, repair, self._trial.settings.repair, self.answer_format)
        messages = prompt.messages_with_task_in_system if task_in_system else prompt.messages
        turns = self._trial.turns()
        answer = await by(messages, self._line(subtasks, purpose, turns, self._cases.of(case_of(given))))
        self._injection.end_attempts(subtasks, purpose.context.sample)
        text, call = (answer, None) if isinstance(answer, str) else (answer.text, answer.call)
        proposal = turns.proposal(text, subtasks, sources, call)
        if given:
            proposal = replace(proposal, documents=given)
        await self._trial.run_checks_ahead([proposal])
        if not receipts:
            return proposal
        for receipt in receipts:
            receipt.call = proposal.calls[-1]
        return replace(proposal, receipts=(*receipts, *proposal.receipts))

    def _line(self, subtasks: tuple[Subtask, ...], first: CallPurpose, turns: Turns, causes: Causes) -> ModelLine:
        """Return the function through which an agent calls the model for one proposal.

        The first call has the purpose `first`. The purpose of each further call follows from the call before it.
        """
        last: CallPurpose | None = None
        names, schema = names_of(subtasks), answer_schema(subtasks)
        questions: list[tuple[Message, ...]] = []

        async def line(messages: Sequence[Message]) -> LineReply:
            """Send the messages as one call of the agent, and return the reply."""
            nonlocal last
            question = tuple(messages)
            rejected = turns.judge_last(subtasks) if last else None
            last = purpose = causes.further_purpose(names, last, question in questions, rejected) if last else first
            questions.append(question)
            causes.note_question(names, question)
            received = await self._trial.caller.call(
                messages, purpose, schema, lambda reply, call: self._trial.corrupt(reply, subtasks, purpose, call)
            )
            turns.add(subtasks, purpose, received)
            if self._trial.verifier.can_be_slow(received.text):
                await self._trial.run_checks_ahead(turns.slow_proposals(subtasks))
            return LineReply(received.text, received.finish, received.call)

        return line
