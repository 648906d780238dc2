"""A session at the measuring endpoint: a framework, or an agent of any kind, sends the model calls for some subtasks itself.

The framework has its own prompts, checks and retries. The session gives it addresses and our prompts, answers its requests, and
makes proposals of its outputs.

Each call is counted as for any other architecture, and under the same faults. A request that repeats a failed request is its
next try. Any other request is a further step, a further sample or, after a rejection, a new attempt at its subtasks. Which of
these it is must be inferred, since the framework does not say. The endpoint's seeds replace the framework's: the experiment
sets a trial's seeds for every architecture.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from bench.common.errors import GaveUp, NotRecorded, whole_text
from bench.record.extra_fields import json_text
from bench.record.formats import AnswerFormat
from bench.record.messages import Message
from bench.run.models.base import Reply
from bench.run.trial.call import Lost, Received, purpose_after_loss
from bench.run.trial.causes import MAX_CALLS_OF_AN_ATTEMPT, CallLimit, CallPurpose
from bench.run.trial.clock import Pause
from bench.run.trial.faults import DueFault, OpenReceipt
from bench.run.trial.injection import Corrupted
from bench.run.trial.prompt import Prompt, prompt_of
from bench.run.trial.proposal import Proposal
from bench.run.trial.trial import Server, Trial
from bench.run.trial.verification import Rejected
from bench.scenario import Subtask
from bench.task import names_of

IsJudging = Callable[[Sequence[Message]], bool]
"""Returns whether these messages ask for a judgment on an output, not for an output."""
LONGEST_DETAIL = 500
"""Characters of a refusal's reason that its event keeps."""
MAX_SETTINGS, LONGEST_SETTING = 100, 200
"""How many of a client's settings are kept that are not passed on to the model, and how many characters of each value."""


def never(_: Sequence[Message]) -> bool:
    """Return False: no message asks for a judgment.

    Args:
        _: The messages of a call.

    Returns:
        False.
    """
    return False


@dataclass
class _Pending:
    """A request that has no reply yet.

    faults   the faults that are still due
    tries    how often it was sent
    losses   the events of lost paid replies to it
    pause    the pause since the last try failed
    """

    purpose: CallPurpose
    faults: list[DueFault]
    tries: int = 0
    losses: list[int] = field(default_factory=list)
    pause: Pause | None = None


RequestKey = tuple[tuple[str, ...], tuple[Message, ...], str]
"""The key by which a request counts as repeated: the names of its subtasks, its messages, and its options."""


@dataclass(frozen=True)
class Exchange:
    """A request and the reply that its client got.

    messages            the messages
    instruction_count   the first messages, so many, are not part of the conversation that a client can go on with
    options             the other options, as JSON
    reply               the reply
    """

    messages: tuple[Message, ...]
    instruction_count: int
    options: str
    reply: Reply

    @property
    def conversation(self) -> tuple[Message, ...]:
        """Return the messages up to this reply."""
        turn = Message("assistant", self.reply.text, self.reply.tool_calls, extra=self.reply.extra)
        return (*self.messages[self.instruction_count :], turn)


PARALLEL = "X-Bench-Parallel"
"""The header in which a client says how many calls, this one included, it makes together."""


class EndpointSession:
    """A session in which one proposer sends its own requests.

    Its addresses end in /v1, as OpenAI's clients expect of a `base_url`.

    root       the address of its server; `api_key` is the API key that a client gives there
    """

    def __init__(
        self,
        subtasks: tuple[Subtask, ...],
        trial: Trial,
        judges: IsJudging = never,
        limit: CallLimit = "calls",
        judged: bool = True,
    ):
        self.subtasks, self._trial, self._judges, self._limit, self._verifies_in_shadow = subtasks, trial, judges, limit, judged
        self._caller, self._turns = trial.caller, trial.turns()
        self.received = self.refused = 0
        self.exchanges: dict[int, Exchange] = {}
        self._set_aside: dict[str, str] = {}
        self._failed: dict[RequestKey, list[_Pending]] = {}
        self._input_receipts: dict[tuple[str, ...], tuple[OpenReceipt, ...]] = {}
        self._failure: Exception | None = None
        self._bug: Exception | None = None

    def subtasks_at(self, path: str) -> tuple[Subtask, ...] | None:
        """Return the subtasks that the path of an address names.

        Args:
            path: Names joined by +; "" for all of the session's.

        Returns:
            The subtasks; None if a name is unknown, or stands twice.
        """
        if not path:
            return self.subtasks
        by_name = {subtask.name: subtask for subtask in self.subtasks}
        names = path.split("+")
        are_valid = set(names) <= by_name.keys() and len(set(names)) == len(names)
        return tuple(by_name[name] for name in names) if are_valid else None

    @property
    def parameters(self) -> Mapping[str, object]:
        """Return the experiment's parameters of the model, which replace a client's settings."""
        return self._caller.parameters

    @property
    def answer_format(self) -> AnswerFormat:
        """Return the format in which answers are asked for and read."""
        return self._trial.settings.answer_format

    def start_clock(self) -> None:
        """Start the trial's time now that its agent has sent a request, and not when its session was opened."""
        self._caller.restart_clock()

    def log_refusal(self, status: int, detail: str) -> None:
        """Log a request that was refused, so that an agent that continues regardless does not look idle.

        Args:
            status: The HTTP status that it was answered with.
            detail: Why it was refused.
        """
        self.refused += 1
        self._caller.log_refusal(status, " ".join(whole_text(detail).split())[:LONGEST_DETAIL])

    def note_set_aside(self, settings: Mapping[str, Any]) -> None:
        """Note settings of a request that are not passed on to the model, for the log.

        Args:
            settings: Their values by name.
        """
        for name, value in settings.items():
            if name in self._set_aside or len(self._set_aside) < MAX_SETTINGS:
                self._set_aside[name] = whole_text(json_text(value)[:LONGEST_SETTING])

    def log_set_aside(self) -> None:
        """Log the settings that were set aside since the last call of this method, if any."""
        if self._set_aside:
            self._caller.log_settings(self._set_aside)
            self._set_aside = {}

    def expect(self, calls: int) -> None:
        """Declare that the framework makes its next calls together, and no further call before all of them are answered.

        This is not needed on a live model, or if it makes one call at a time.

        Args:
            calls: How many.

        Raises:
            UndeclaredCalls: A call is in flight already.
        """
        self._caller.expect(calls)

    async def answer(
        self, subtasks: tuple[Subtask, ...], messages: tuple[Message, ...], together: int | None = None, options: str = ""
    ) -> Reply:
        """Answer one request. The server cancels this call if the client closes the connection.

        Args:
            subtasks: The subtasks that the request is for.
            messages: The messages of the request.
            together: The number of requests that the client makes at the same time; None if the request does not say so.
            options: The other options of the request, as JSON.

        Returns:
            The reply.

        Raises:
            CallFailed: The call failed, injected or real; the framework sees this as HTTP.
            GaveUp: A limit forbids the call.
        """
        question = names_of(subtasks), messages, options
        pending = None
        try:
            async with self._caller.endpoint_call(question, together, again=bool(self._failed.get(question))):
                pending = self._pending(question, subtasks)
                outcome = await self._send(pending, subtasks, question)
        except asyncio.CancelledError:
            if pending and (lost := self._caller.abandoned):
                self._caller.abandoned = None
                self._record_failure(question, pending, lost)
            self._failure = GaveUp(question[0], "the framework did not wait for the reply")
            raise
        except GaveUp as gave_up:
            self._reach_limit(gave_up)
            raise
        except Exception as bug:
            self._bug = self._bug or bug
            raise
        if isinstance(outcome, Lost):
            self._record_failure(question, pending, outcome)
            raise outcome.failure
        self._failure = None
        for event in pending.losses:
            self._note_recovered(event)
        if pending.purpose.cause != "judge":
            self._add_turn(question, subtasks, pending.purpose, self._with_input_receipts(question[0], outcome))
            await self._run_checks_ahead(subtasks)
        return Reply(outcome.text, outcome.finish, outcome.usage, tool_calls=outcome.tool_calls, extra=outcome.extra)

    def explain(self, error: Exception) -> None:
        """Raise the cause of a framework's exception, if the cause is known; else return.

        Args:
            error: The framework's exception.

        Raises:
            Exception: A bug behind the endpoint, or the failure of the framework's last call.
        """
        cause = self._bug or self._failure
        if cause:
            raise cause from error

    def check(self) -> None:
        """Raise the exception of a bug behind the endpoint, even if the framework continued after it.

        Raises:
            Exception: The bug.
        """
        if self._bug:
            raise self._bug

    root, api_key = "", "none"

    def base_url(self, *subtasks: Subtask) -> str:
        """Return the base URL for calls that ask for the outputs of these subtasks.

        Args:
            subtasks: The subtasks; all of the session's if none is named.

        Returns:
            The base URL, which ends in `/v1`.
        """
        names = "+".join(subtask.name for subtask in subtasks)
        return f"{self.root}/{names}/v1" if names else f"{self.root}/v1"

    def messages(
        self, *subtasks: Subtask, documents_alone: bool = False, repair: Rejected | None = None
    ) -> tuple[Message, ...]:
        """Return the messages of our own prompt for these subtasks, system and user.

        Args:
            subtasks: The subtasks; all of the session's if none is named.
            documents_alone: As in `prompt`.
            repair: As in `prompt`.

        Returns:
            The messages.

        Raises:
            RuntimeError: As in `prompt`.
        """
        return self.prompt(*subtasks, documents_alone=documents_alone, repair=repair).messages

    def prompt(self, *subtasks: Subtask, documents_alone: bool = False, repair: Rejected | None = None) -> Prompt:
        """Return our own prompt for these subtasks in the present state.

        Ask for it once an attempt: faults in inputs strike here.

        Args:
            subtasks: The subtasks; all of the session's if none is named.
            documents_alone: Leave out other subtasks' outputs, if the framework passes them on itself.
            repair: The rejection that is told in our words, as the repair setting says; None if the framework tells it.

        Returns:
            The prompt.

        Raises:
            RuntimeError: An input of the subtasks has no output yet.
        """
        trial, chosen = self._trial, subtasks or self.subtasks
        sources = trial.state.sources(chosen) if documents_alone else trial.sources(chosen)
        if documents_alone:
            sources = tuple(source for source in sources if not source.version)
        inputs = {source.name: trial.state.text_of(source) for source in sources}
        names = names_of(chosen)
        inputs, self._input_receipts[names] = trial.injection.strike_inputs(chosen, inputs, trial.causes.attempts(names) + 1)
        return prompt_of(trial.task, chosen, inputs, repair, trial.settings.repair, self.answer_format)

    def proposal(self, text: str, *subtasks: Subtask) -> Proposal:
        """Return a proposal of the text that the framework made of its replies.

        Args:
            text: The text that the framework returned.
            subtasks: The subtasks that it is for; all of the session's if none is named.

        Returns:
            The proposal, neither verified nor written.

        Raises:
            RuntimeError: No reply came for these subtasks.
        """
        chosen = subtasks or self.subtasks
        self._trial.injection.end_attempts(chosen)
        return self._turns.proposal(text, chosen)

    async def submit(self, outputs: Mapping[str, str]) -> AsyncIterator[Proposal]:
        """Yield an agent's answer as one proposal for each subtask. Commit each proposal before the next is requested.

        The agent judged by itself: its replies without a verdict are verified in shadow.

        Args:
            outputs: Text by subtask; empty if the agent gives up.

        Yields:
            A proposal for each subtask, in the task's order.

        Raises:
            GaveUp: The agent handed in nothing.
            RuntimeError: A subtask had no reply.
        """
        submitted = {subtask.name: subtask for subtask in self.subtasks if subtask.name in outputs}
        final_parts = {name: self._turns.parts(outputs[name], [subtask])[name] for name, subtask in submitted.items()}
        for subtask in self.subtasks:
            if self._verifies_in_shadow:
                await self._run_checks_ahead([subtask])
                self._turns.judge_rest(subtask, final_parts)
            if subtask.name in submitted:
                yield self.proposal(outputs[subtask.name], subtask)

    def has_reply(self, name: str) -> bool:
        """Return whether a reply arrived from which this subtask's output can have been made.

        Args:
            name: The subtask's name.

        Returns:
            True if such a reply arrived.
        """
        return self._turns.has_reply(name)

    def attempts(self) -> dict[str, int]:
        """Return the number of attempts by subtask.

        Returns:
            The number of attempts by the subtask's name.
        """
        return {subtask.name: self._trial.causes.attempts(names_of([subtask])) for subtask in self.subtasks}

    @asynccontextmanager
    async def serve(self, server: Server | None = None) -> AsyncIterator[Self]:
        """Serve the session over HTTP while the block runs.

        Args:
            server: The server of the session; None: the trial's server.

        Yields:
            The session.

        Raises:
            GaveUp: The block raised after an injected failure of the session's last call.
            CallFailed: The block raised after the session's last call had failed.
        """
        try:
            async with (server or self._trial.server)(self) as self.root:
                with self._caller.elsewhere():
                    yield self
        except Exception as error:
            self.explain(error)
            raise
        self.check()

    async def _run_checks_ahead(self, subtasks: Sequence[Subtask]) -> None:
        """Run slow checks of the unjudged replies for these subtasks off the event loop."""
        if self._verifies_in_shadow:
            await self._trial.run_checks_ahead(self._turns.slow_proposals(subtasks))

    def _add_turn(self, question: RequestKey, subtasks: tuple[Subtask, ...], purpose: CallPurpose, received: Received) -> None:
        """Add a reply as a turn of the proposer that sent the request."""
        del question
        self._turns.add(subtasks, purpose, received)

    def _pending(self, question: RequestKey, subtasks: tuple[Subtask, ...]) -> _Pending:
        """Return the failed request that this request repeats; if it repeats none, return a new request.

        Raises GaveUp if a request was repeated MAX_CALLS_OF_AN_ATTEMPT times. An agent that asks again until a reply comes
        would else never end under a persistent fault.
        """
        names, messages, _ = question
        if failed := self._failed.get(question):
            pending = failed[0]
            if self._limit != "none" and pending.tries >= MAX_CALLS_OF_AN_ATTEMPT:
                raise GaveUp(names, f"no reply after {pending.tries} tries")
            del failed[0]
            if pending.pause:
                self._caller.log_pause(pending.pause)
            return pending
        if self._judges(messages):
            return _Pending(self._trial.causes.judge_purpose(names_of(subtasks)), [])
        purpose = self._new_purpose(question, subtasks)
        return _Pending(purpose, self._caller.due_faults(purpose))

    def _new_purpose(self, question: RequestKey, subtasks: tuple[Subtask, ...]) -> CallPurpose:
        """Return the purpose of a new request. Raises GaveUp if a limit is reached."""
        if self._verifies_in_shadow:
            self._turns.judge_last(subtasks)
        names, messages, options = question
        question_key = (messages, options) if options else messages
        under_way = self._turns.under_way(subtasks)
        return self._trial.causes.next_purpose(names, question_key, inferred=True, limit=self._limit, under_way=under_way)

    def _reach_limit(self, gave_up: GaveUp) -> None:
        """Record that a limit stopped the agent.

        An agent with limited attempts can still submit its outputs; for any other agent the limit is a bug.
        """
        if self._limit == "attempts":
            self._failure = gave_up
        else:
            self._bug = self._bug or gave_up

    async def _send(self, pending: _Pending, subtasks: tuple[Subtask, ...], question: RequestKey) -> Received | Lost:
        """Send a pending request once more."""
        pending.tries += 1
        purpose = pending.purpose

        def corrupt(reply: Reply, call: int) -> Corrupted:
            return Corrupted(reply.text) if purpose.cause == "judge" else self._trial.corrupt(reply, subtasks, purpose, call)

        _, messages, options = question
        return await self._caller.send(messages, purpose, pending.faults, pending.tries, corrupt, options=options)

    def _record_failure(self, question: RequestKey, pending: _Pending, lost: Lost) -> None:
        """Record that a request failed. The time until the framework repeats the request is the framework's back-off."""
        failure = lost.failure
        if isinstance(failure, NotRecorded):  # a live model would have answered, so the trial is not valid
            self._bug = self._bug or failure
        if pending.purpose.cause != "judge":
            pending.purpose = purpose_after_loss(lost, pending.purpose)
            if failure.paid:
                pending.losses.append(lost.event)
                self._note_lost(pending.purpose, lost.event)
        pending.pause = self._caller.pause()
        self._failed.setdefault(question, []).append(pending)
        gave_up = GaveUp(question[0], f"the framework gave up: {failure.detail}")
        self._failure = gave_up if failure.injected else failure

    def _note_lost(self, purpose: CallPurpose, event: int) -> None:
        """Note that the event of this number is the loss of a paid reply."""
        self._trial.causes.note_failure(purpose.context.subtasks, event)

    def _note_recovered(self, event: int) -> None:
        """Note that a reply arrived that the event of this number had counted as lost."""
        self._trial.causes.note_late_reply(event)

    def _with_input_receipts(self, names: tuple[str, ...], received: Received) -> Received:
        """Return a reply with the receipts of the faults in the inputs of its prompt."""
        prompts = [subtasks for subtasks in self._input_receipts if set(subtasks) <= set(names)]
        receipts = [receipt for subtasks in prompts for receipt in self._input_receipts.pop(subtasks)]
        for receipt in receipts:
            receipt.call = received.call
        return received.with_receipts(receipts)
