"""A session at the measuring endpoint: a framework, or an agent of any kind, makes the calls for some subtasks itself.

It owns its prompts, its checks and its retries; what arrives at the endpoint is accounted for call by call, by the same caller,
under the same faults as any other architecture's. A request that repeats one that has just failed is that one's next try. Any
other one is a further step, a further sample or, after a rejection, a new attempt at its subtasks: nobody says which, so that
it is inferred. The endpoint's seeds take the place of the proposer's: a trial's seeds are the experiment's, for every
architecture.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from bench.answers.formats import AnswerFormat
from bench.errors import GaveUp, NotRecorded, whole_text
from bench.models.base import Message, Reply
from bench.runtime.call import Lost, Received, after
from bench.runtime.caller import Caller
from bench.runtime.causes import MOST_CALLS_OF_AN_ATTEMPT, CallLimit, CallPurpose
from bench.runtime.clock import Pause
from bench.runtime.faults import Due, OpenReceipt
from bench.runtime.host import Host
from bench.runtime.injection import Corrupted
from bench.runtime.prompt import Prompt
from bench.runtime.proposal import Proposal
from bench.runtime.turns import Turns
from bench.runtime.verification import Rejected
from bench.scenario import Subtask

PARALLEL = "X-Bench-Parallel"
"""The header in which a client says how many calls, this one among them, it makes together."""
IsJudging = Callable[[Sequence[Message]], bool]
"""Whether these messages ask for a judgment on an output, not for an output."""
LONGEST_DETAIL = 500
"""Characters of why a request was refused that its event keeps."""
Server = Callable[["EndpointSession"], AbstractAsyncContextManager[str]]
"""Serves a session over HTTP; opens with the root address, http://HOST:PORT."""


def never(_: Sequence[Message]) -> bool:
    """Tell that no message asks for a judgment.

    Args:
        _: The messages of a call.

    Returns:
        False.
    """
    return False


def no_server(_: EndpointSession) -> AbstractAsyncContextManager[str]:
    """Refuse to serve: for a workbench that has no server.

    Args:
        _: The session.

    Returns:
        Nothing.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError("nothing serves the sessions of this workbench")


@dataclass
class _Pending:
    """One request on its way to a reply.

    faults   those still due
    tries    how often it was sent
    losses   the events of the paid replies to it that were lost
    pause    the pause since the last try failed
    """

    ask: CallPurpose
    faults: list[Due]
    tries: int = 0
    losses: list[int] = field(default_factory=list)
    pause: Pause | None = None


RequestKey = tuple[tuple[str, ...], tuple[Message, ...], str]
"""What makes a request the repetition of another: the names of its subtasks, its messages, and its options."""


class EndpointSession:
    """One proposer's session. Its addresses end in /v1, as OpenAI's clients want a `base_url` to end.

    root       where it is served, and `api_key`, what a client gives there as its API key
    received   the endpoint's own count of the requests that it took; the account's calls must come to as many
    refused    how many it did not take
    """

    def __init__(
        self,
        subtasks: tuple[Subtask, ...],
        host: Host,
        caller: Caller,
        turns: Turns,
        judges: IsJudging = never,
        limit: CallLimit = "calls",
        judged: bool = True,
    ):
        self.subtasks, self._host, self._caller, self._turns, self._judges = subtasks, host, caller, turns, judges
        self._limit, self._judged = limit, judged
        self.root, self.api_key = "", "none"
        self.received = self.refused = 0
        self._failed: dict[RequestKey, list[_Pending]] = {}
        self._read: dict[tuple[str, ...], tuple[OpenReceipt, ...]] = {}
        self._failure: Exception | None = None
        self._bug: Exception | None = None

    def base_url(self, *subtasks: Subtask) -> str:
        """Return the address for calls that ask for the outputs of these subtasks.

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
        """Return our own prompt for these subtasks as the state stands.

        Ask for it once an attempt: faults in what is read strike here.

        Args:
            subtasks: The subtasks; all of the session's if none is named.
            documents_alone: Leave the outputs that are read to the framework, which passes them on itself.
            repair: The rejection that is told in our words, as the repair setting says; None where the framework tells it.

        Returns:
            The prompt.

        Raises:
            RuntimeError: Something that they read is not there yet.
        """
        chosen = subtasks or self.subtasks
        prompt, self._read[_names(chosen)] = self._host.prompt(chosen, documents_alone, repair)
        return prompt

    def proposal(self, text: str, *subtasks: Subtask) -> Proposal:
        """Return what the framework made of its replies.

        Args:
            text: What the framework returned.
            subtasks: The subtasks that it is for; all of the session's if none is named.

        Returns:
            The proposal, neither verified nor written.

        Raises:
            RuntimeError: No reply came for these subtasks.
        """
        chosen = subtasks or self.subtasks
        self._host.settle(chosen)
        return self._turns.proposal(text, chosen)

    async def submit(self, outputs: Mapping[str, str]) -> AsyncIterator[Proposal]:
        """Yield what an agent hands in, as proposals; each is to be committed before the next is asked for.

        The agent judged by itself: its replies that had no verdict yet are verified in shadow.

        Args:
            outputs: Text by subtask; empty where the agent gives up.

        Yields:
            A proposal for each subtask, in the task's order.

        Raises:
            GaveUp: The agent handed in nothing.
            RuntimeError: A subtask had no reply.
        """
        known = {subtask.name: subtask for subtask in self.subtasks if subtask.name in outputs}
        kept = {name: self._turns.parts(outputs[name], [subtask])[name] for name, subtask in known.items()}
        for subtask in self.subtasks:
            if self._judged:
                await self._foresee([subtask])
                self._turns.judge_rest(subtask, kept)
            if subtask.name in known:
                yield self.proposal(outputs[subtask.name], subtask)

    def answered(self, name: str) -> bool:
        """Tell whether a reply came that this subtask's output can have been made of.

        Args:
            name: The subtask's name.

        Returns:
            True if one did.
        """
        return self._turns.answered(name)

    def named(self, path: str) -> tuple[Subtask, ...] | None:
        """Return the subtasks that an address is for.

        Args:
            path: Names joined by +; "" for all of the session's.

        Returns:
            The subtasks; None where a name is unknown, or stands twice.
        """
        if not path:
            return self.subtasks
        known = {subtask.name: subtask for subtask in self.subtasks}
        names = path.split("+")
        return tuple(known[name] for name in names) if set(names) <= known.keys() and len(set(names)) == len(names) else None

    @property
    def parameters(self) -> Mapping[str, object]:
        """Return what the experiment asks the model with, in the place of a client's settings."""
        return self._caller.parameters

    @property
    def answer_format(self) -> AnswerFormat:
        """Return in which form answers are asked for, and read."""
        return self._host.answer_format

    def attempts(self) -> dict[str, int]:
        """Return how many attempts there were.

        Returns:
            The number of attempts by the subtask's name.
        """
        return {subtask.name: self._host.attempts([subtask]) for subtask in self.subtasks}

    def begin(self) -> None:
        """Let the trial's time begin now, not when its session was opened: until then its agent had not come."""
        self._caller.restart_clock()

    def refuse(self, status: int, detail: str) -> None:
        """Leave the trace of a request that was not taken, so that an agent that goes on regardless does not look idle.

        Args:
            status: The HTTP status that it was answered with.
            detail: Why it was refused.
        """
        self.refused += 1
        self._caller.refuse(status, " ".join(whole_text(detail).split())[:LONGEST_DETAIL])

    def expect(self, calls: int) -> None:
        """Declare that the framework makes its next calls together, and none before all of them are answered.

        It need not say so on a live model, nor where it makes one call at a time.

        Args:
            calls: How many.

        Raises:
            UndeclaredCalls: A call is in flight already.
        """
        self._caller.expect(calls)

    async def answer(
        self, subtasks: tuple[Subtask, ...], messages: tuple[Message, ...], together: int | None = None, options: str = ""
    ) -> Reply:
        """Answer one request. A cancellation means that its client went away.

        Args:
            subtasks: What the request is for.
            messages: What it sends.
            together: With how many requests it was made together, if it says so.
            options: What it asks for beside its messages, as JSON.

        Returns:
            The reply.

        Raises:
            CallFailed: The call failed, injected or real; the framework sees that as HTTP.
            GaveUp: A limit lets no such call through.
        """
        question = _names(subtasks), messages, options
        pending = None
        try:
            async with self._caller.arrival(question, together, again=bool(self._failed.get(question))):
                pending = self._pending(question, subtasks)
                outcome = await self._send(pending, subtasks, question)
        except asyncio.CancelledError:
            if pending and (lost := self._caller.abandoned):
                self._caller.abandoned = None
                self._lose(question, pending, lost)
            self._failure = GaveUp(question[0], "the framework did not wait for the reply")
            raise
        except GaveUp as gave_up:
            self._reach_limit(gave_up)
            raise
        except Exception as bug:
            self._bug = self._bug or bug
            raise
        if isinstance(outcome, Lost):
            self._lose(question, pending, outcome)
            raise outcome.failure
        self._failure = None
        for event in pending.losses:
            self._recovered(event)
        if pending.ask.cause != "judge":
            self._keep(question, subtasks, pending.ask, self._with_inputs(question[0], outcome))
            await self._foresee(subtasks)
        return Reply(outcome.text, outcome.finish, outcome.usage, tool_calls=outcome.tool_calls, extra=outcome.extra)

    async def _foresee(self, subtasks: Sequence[Subtask]) -> None:
        if self._judged:
            await self._host.foresee(self._turns.to_foresee(subtasks))

    def _keep(self, question: RequestKey, subtasks: tuple[Subtask, ...], ask: CallPurpose, received: Received) -> None:
        """A reply came."""
        del question
        self._turns.add(subtasks, ask, received)

    def explain(self, error: Exception) -> None:
        """Raise what a framework's exception comes down to, where it is known.

        Args:
            error: What the framework raised.

        Raises:
            Exception: A bug behind the endpoint, or the failure of the framework's last call.
        """
        cause = self._bug or self._failure
        if cause:
            raise cause from error

    def check(self) -> None:
        """Raise what went wrong behind the endpoint, even where the framework went on regardless.

        Raises:
            Exception: The bug.
        """
        if self._bug:
            raise self._bug

    def _pending(self, question: RequestKey, subtasks: tuple[Subtask, ...]) -> _Pending:
        """Return the failed request that this one repeats, else a new one.

        Raises GaveUp where it was repeated without end, as by an agent that asks again until a reply comes, under a fault that
        never wears off.
        """
        if failed := self._failed.get(question):
            if self._limit != "none" and failed[0].tries >= MOST_CALLS_OF_AN_ATTEMPT:
                raise GaveUp(question[0], f"no reply after {failed[0].tries} tries")
            pending = failed.pop(0)
            if pending.pause:
                self._caller.waited(pending.pause)
            return pending
        if self._judges(question[1]):
            return _Pending(self._host.judge_ask(subtasks), [])
        ask = self._ask(question, subtasks)
        return _Pending(ask, self._caller.due(ask))

    def _ask(self, question: RequestKey, subtasks: tuple[Subtask, ...]) -> CallPurpose:
        """What a new request is for. Raises GaveUp where the limit is reached."""
        if self._judged:
            self._turns.judge_last(subtasks)
        asked = question[1:] if question[2] else question[1]
        return self._host.next_ask(subtasks, asked, self._turns.under_way(subtasks), self._limit)

    def _reach_limit(self, gave_up: GaveUp) -> None:
        """An agent whose attempts are bounded here may still hand in what it has. Any other should have stopped before."""
        if self._limit == "attempts":
            self._failure = gave_up
        else:
            self._bug = self._bug or gave_up

    async def _send(self, pending: _Pending, subtasks: tuple[Subtask, ...], question: RequestKey) -> Received | Lost:
        pending.tries += 1
        ask = pending.ask

        def corrupt(reply: Reply, call: int) -> Corrupted:
            return Corrupted(reply.text) if ask.cause == "judge" else self._host.corrupt(reply, subtasks, ask, call)

        _, messages, options = question
        return await self._caller.send(messages, ask, pending.faults, pending.tries, corrupt, options=options)

    def _lose(self, question: RequestKey, pending: _Pending, lost: Lost) -> None:
        """A request failed: it may be repeated, and the time until then is the framework's back-off."""
        failure = lost.failure
        if isinstance(failure, NotRecorded):  # a live model would have answered: whatever follows is no trial of it
            self._bug = self._bug or failure
        if pending.ask.cause != "judge":
            pending.ask = after(lost, pending.ask)
            if failure.paid:
                pending.losses.append(lost.event)
                self._lost(pending.ask, lost.event)
        pending.pause = self._caller.pause()
        self._failed.setdefault(question, []).append(pending)
        gave_up = GaveUp(question[0], f"the framework gave up: {failure.detail}")
        self._failure = gave_up if failure.injected else failure

    def _lost(self, ask: CallPurpose, event: int) -> None:
        """A paid reply was lost, by this event."""
        self._host.lost(ask, event)

    def _recovered(self, event: int) -> None:
        """The reply whose loss this event was has come after all."""
        self._host.recovered(event)

    def _with_inputs(self, names: tuple[str, ...], received: Received) -> Received:
        """A reply carries the faults of what was read for it, too."""
        read = [receipt for asked in list(self._read) if set(asked) <= set(names) for receipt in self._read.pop(asked)]
        for receipt in read:
            receipt.call = received.call
        return received.with_receipts(read)


def _names(subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    return tuple(subtask.name for subtask in subtasks)
