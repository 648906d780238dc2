"""A line on loan: a framework makes the calls for some subtasks itself, through a measuring endpoint on loopback.

The framework owns its prompts, its checks and its retries; what arrives at the endpoint is accounted for call by call, by the
same caller, under the same faults as any other architecture's. A request that repeats one that has just failed is that one's
next try, of the same attempt; any other one is a new attempt at its subtasks. So a client's hidden retries show as what they
are. The endpoint's seeds take the place of the framework's: a trial's seeds are the experiment's, for every architecture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from bench.errors import CallFailed, GaveUp
from bench.models.base import Message, Reply
from bench.runtime.caller import Ask, Caller, Received, Spoiled
from bench.runtime.clock import Pause
from bench.runtime.faults import Due, Receipt
from bench.runtime.proposal import Proposal
from bench.scenario import Subtask

Judges = Callable[[Sequence[Message]], bool]
"""Whether these messages ask for a judgment on an output, not for an output."""


def never(_: Sequence[Message]) -> bool:
    return False


@dataclass(frozen=True)
class Terms:
    """What the workbench does for a loan.

    ask       the next attempt at subtasks; `again` where an earlier one on the same loan did not do
    judge     a judge call about subtasks, within their latest attempt
    prompt    our own messages for subtasks, and the receipts of faults in what they read
    spoil     a reply, by the content faults due
    propose   what was made of a reply, as a proposal
    """

    ask: Callable[[Sequence[str], bool], Ask]
    judge: Callable[[Sequence[str]], Ask]
    prompt: Callable[[Sequence[Subtask]], tuple[tuple[Message, ...], tuple[Receipt, ...]]]
    spoil: Callable[[Reply, Sequence[Subtask], int, int], Spoiled]
    propose: Callable[[str, Sequence[Subtask], int, Received], Proposal]


Host = Callable[["Loan"], AbstractAsyncContextManager[str]]
"""Serves a loan over HTTP; opens with the root address, http://HOST:PORT."""


def nowhere(_: Loan) -> AbstractAsyncContextManager[str]:
    raise RuntimeError("nothing serves the loans of this workbench")


@dataclass
class _Open:
    """What is going on for one set of subtasks: the ask, the faults still due, the messages of a failed try and its pause."""

    ask: Ask
    messages: tuple[Message, ...]
    faults: list[Due]
    tries: int = 0
    pause: Pause | None = None


@dataclass
class Loan:
    """`root` is where it is served. Its addresses end in /v1, as OpenAI's clients want a `base_url` to end."""

    subtasks: tuple[Subtask, ...]
    judges: Judges
    terms: Terms
    caller: Caller
    root: str = ""
    failure: CallFailed | None = None
    _open: dict[tuple[str, ...], _Open] = field(default_factory=dict)
    _read: dict[tuple[str, ...], tuple[Receipt, ...]] = field(default_factory=dict)
    _asked: set[tuple[str, ...]] = field(default_factory=set)
    _last: dict[tuple[str, ...], tuple[int, Received]] = field(default_factory=dict)

    def base_url(self, *subtasks: Subtask) -> str:
        """The address for calls that ask for the outputs of these subtasks; for all of the loan's, if none is named."""
        names = "+".join(subtask.name for subtask in subtasks)
        return f"{self.root}/{names}/v1" if names else f"{self.root}/v1"

    def messages(self, *subtasks: Subtask) -> tuple[Message, ...]:
        """Our own prompt, system and user, for these subtasks (all of the loan's, if none is named) as the state stands.

        To be asked for once an attempt: faults in what is read strike here.
        """
        chosen = subtasks or self.subtasks
        messages, self._read[_names(chosen)] = self.terms.prompt(chosen)
        return messages

    def proposal(self, text: str, *subtasks: Subtask) -> Proposal:
        """What the framework made of the last reply for these subtasks. Raises RuntimeError where it never asked for them."""
        chosen = subtasks or self.subtasks
        names = _names(chosen)
        if names not in self._last:
            raise RuntimeError(f"the framework sent no request for {' + '.join(names)}")
        return self.terms.propose(text, chosen, *self._last[names])

    def named(self, path: str) -> tuple[Subtask, ...] | None:
        """The subtasks that an address is for: `` all of the loan's, else names joined by +. None where one is unknown."""
        if not path:
            return self.subtasks
        known = {subtask.name: subtask for subtask in self.subtasks}
        names = path.split("+")
        return tuple(known[name] for name in names) if all(name in known for name in names) else None

    async def answer(self, subtasks: tuple[Subtask, ...], messages: tuple[Message, ...]) -> Reply:
        """One request. Raises the CallFailed that it met, injected or real; the framework sees that as HTTP."""
        names = _names(subtasks)
        opened = self._next(names, messages)
        opened.tries += 1
        judging = opened.ask.cause == "judge"

        def spoil(reply: Reply, call: int) -> Spoiled:
            if judging:
                return Spoiled(reply.text)
            return self.terms.spoil(reply, subtasks, opened.ask.purpose.attempt, call)

        received = await self.caller.send(messages, opened.ask, opened.faults, opened.tries, spoil)
        if isinstance(received, CallFailed):
            self._failed(opened, received)
            raise received
        self.failure = None
        del self._open[names]
        if not judging:
            self._last[names] = opened.ask.purpose.attempt, self._with_read(names, received)
        return Reply(received.text, received.finish, received.usage)

    def _with_read(self, names: tuple[str, ...], received: Received) -> Received:
        """The reply carries the faults of what was read for it, too."""
        read = self._read.pop(names, ())
        for receipt in read:
            receipt.call = received.call
        return replace(received, receipts=(*read, *received.receipts))

    def close(self) -> None:
        """End the pauses of requests that were never repeated."""
        for opened in self._open.values():
            self._resume(opened)

    def reason(self, error: Exception) -> Exception:
        """What a framework's exception comes down to: the failure of its last call, if it failed, else the exception."""
        if self.failure is None:
            return error
        return (
            GaveUp(_names(self.subtasks), f"the framework gave up: {self.failure.detail}")
            if self.failure.injected
            else self.failure
        )

    def _next(self, names: tuple[str, ...], messages: tuple[Message, ...]) -> _Open:
        opened = self._open.get(names)
        if opened:
            self._resume(opened)
            if opened.messages == messages:
                return opened
        if self.judges(messages):
            ask, faults = self.terms.judge(names), list[Due]()
        else:
            ask = self.terms.ask(names, names in self._asked)
            faults = self.caller.due(ask)
            self._asked.add(names)
        self._open[names] = _Open(ask, messages, faults)
        return self._open[names]

    def _failed(self, opened: _Open, failure: CallFailed) -> None:
        self.failure = failure
        if failure.paid and opened.ask.cause != "judge":
            opened.ask = replace(opened.ask, cause="retry")
        opened.pause = self.caller.pause()

    def _resume(self, opened: _Open) -> None:
        if opened.pause:
            self.caller.waited(opened.pause)
            opened.pause = None


def _names(subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    return tuple(subtask.name for subtask in subtasks)
