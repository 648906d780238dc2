"""A line on endpoint: a framework makes the calls for some subtasks itself, through a measuring endpoint on loopback.

The framework owns its prompts, its checks and its retries; what arrives at the endpoint is accounted for call by call, by the
same caller, under the same faults as any other architecture's. A request that repeats one that has just failed is that one's
next try, of the same attempt; any other one is a new attempt at its subtasks. So a client's hidden retries show as what they
are. The endpoint's seeds take the place of the framework's: a trial's seeds are the experiment's, for every architecture.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from bench.errors import CallFailed, GaveUp, NotRecorded
from bench.models.base import Message, Reply
from bench.runtime.caller import Ask, Caller, Corrupted, Received
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
    """What the workbench does for a endpoint.

    ask       the next attempt at subtasks; `again` where an earlier one on the same endpoint did not do
    judge     a judge call about subtasks, within their latest attempt
    prompt    our own messages for subtasks, and the receipts of faults in what they read
    corrupt     a reply, by the content faults due
    propose   what was made of a reply, as a proposal
    """

    ask: Callable[[Sequence[str], bool], Ask]
    judge: Callable[[Sequence[str]], Ask]
    prompt: Callable[[Sequence[Subtask]], tuple[tuple[Message, ...], tuple[Receipt, ...]]]
    corrupt: Callable[[Reply, Sequence[Subtask], int, int], Corrupted]
    propose: Callable[[str, Sequence[Subtask], int, Received], Proposal]


Host = Callable[["EndpointSession"], AbstractAsyncContextManager[str]]
"""Serves a endpoint over HTTP; opens with the root address, http://HOST:PORT."""


def no_server(_: EndpointSession) -> AbstractAsyncContextManager[str]:
    raise RuntimeError("nothing serves the loans of this workbench")


@dataclass
class _Going:
    """One request on its way to a reply: its ask, the faults still due, its tries, and the pause since the last one failed."""

    ask: Ask
    faults: list[Due]
    tries: int = 0
    pause: Pause | None = None


Key = tuple[tuple[str, ...], tuple[Message, ...]]
"""What makes a request the repetition of another: the names of its subtasks, and its messages."""


@dataclass
class EndpointSession:
    """One line on endpoint. Its addresses end in /v1, as OpenAI's clients want a `base_url` to end.

    root       where it is served
    received   the endpoint's own count of the requests that it took; the account's calls must come to as many
    """

    subtasks: tuple[Subtask, ...]
    judges: Judges
    terms: Terms
    caller: Caller
    root: str = ""
    received: int = 0
    _failed: dict[Key, list[_Going]] = field(default_factory=dict)
    _read: dict[tuple[str, ...], tuple[Receipt, ...]] = field(default_factory=dict)
    _asked: set[tuple[str, ...]] = field(default_factory=set)
    _last: dict[str, tuple[int, Received]] = field(default_factory=dict)
    _why: Exception | None = None
    _bug: Exception | None = None

    def base_url(self, *subtasks: Subtask) -> str:
        """The address for calls that ask for the outputs of these subtasks; for all of the endpoint's, if none is named."""
        names = "+".join(subtask.name for subtask in subtasks)
        return f"{self.root}/{names}/v1" if names else f"{self.root}/v1"

    def messages(self, *subtasks: Subtask) -> tuple[Message, ...]:
        """Our own prompt, system and user, for these subtasks (all of the endpoint's, if none is named) as the state stands.

        To be asked for once an attempt: faults in what is read strike here.
        """
        chosen = subtasks or self.subtasks
        messages, self._read[_names(chosen)] = self.terms.prompt(chosen)
        return messages

    def proposal(self, text: str, *subtasks: Subtask) -> Proposal:
        """What the framework made of the last reply for these subtasks. Raises RuntimeError where one had none.

        From here on the workbench's verdict, and no longer the framework's asking again, says whether it did.
        """
        chosen = subtasks or self.subtasks
        self._asked.discard(_names(chosen))
        missing = [name for name in _names(chosen) if name not in self._last]
        if missing:
            raise RuntimeError(f"the framework got no reply for {' + '.join(missing)}")
        attempt, received = max((self._last[name] for name in _names(chosen)), key=lambda last: last[1].call)
        if text != received.text:  # then how that reply finished says nothing about this text
            received = replace(received, finish="stop")
        return self.terms.propose(text, chosen, attempt, received)

    def answered(self, name: str) -> bool:
        """Whether a reply came that this subtask's output can have been made of."""
        return name in self._last

    def named(self, path: str) -> tuple[Subtask, ...] | None:
        """The subtasks that an address is for: `` all of the endpoint's, else names joined by +. None where one is unknown, or
        stands twice."""
        if not path:
            return self.subtasks
        known = {subtask.name: subtask for subtask in self.subtasks}
        names = path.split("+")
        return tuple(known[name] for name in names) if set(names) <= known.keys() and len(set(names)) == len(names) else None

    def expect(self, calls: int) -> None:
        """The framework makes its next so many calls together, and none before all of them are answered. It need not say so
        on a live model, nor where it makes one at a time. Raises UndeclaredCalls where a call is in flight already."""
        self.caller.expect(calls)

    async def answer(self, subtasks: tuple[Subtask, ...], messages: tuple[Message, ...], together: int | None = None) -> Reply:
        """One request, made `together` with so many, if it says so. Raises the CallFailed that it met, injected or real; the
        framework sees that as HTTP. A cancellation means that its client went away."""
        key = _names(subtasks), messages
        going = None
        try:
            async with self.caller.arrival(key, together, again=bool(self._failed.get(key))):
                going = self._going(key)
                received = await self._send(going, subtasks, messages)
        except asyncio.CancelledError:
            if going:
                self._keep(key, going, paid=True)
            self._why = GaveUp(key[0], "the framework did not wait for the reply")
            raise
        except Exception as bug:
            self._bug = self._bug or bug
            raise
        if isinstance(received, NotRecorded):  # a live model would have answered: whatever follows is no trial of it
            self._bug = self._bug or received
        if isinstance(received, CallFailed):
            self._keep(key, going, received.paid)
            gave_up = GaveUp(key[0], f"the framework gave up: {received.detail}")
            self._why = gave_up if received.injected else received
            raise received
        self._why = None
        if going.ask.cause != "judge":
            self._remember(key[0], going.ask, received)
        return Reply(received.text, received.finish, received.usage)

    def explain(self, error: Exception) -> None:
        """Raise what a framework's exception comes down to, where it is known: a bug behind the endpoint, or the failure of the
        framework's last call."""
        cause = self._bug or self._why
        if cause:
            raise cause from error

    def check(self) -> None:
        """Raise what went wrong behind the endpoint, even where the framework went on regardless."""
        if self._bug:
            raise self._bug

    def _going(self, key: Key) -> _Going:
        """The failed request that this one repeats, else a new one."""
        if failed := self._failed.get(key):
            going = failed.pop(0)
            if going.pause:
                self.caller.waited(going.pause)
            return going
        names, messages = key
        if self.judges(messages):
            return _Going(self.terms.judge(names), [])
        ask = self.terms.ask(names, names in self._asked)
        self._asked.add(names)
        return _Going(ask, self.caller.due(ask))

    async def _send(self, going: _Going, subtasks: tuple[Subtask, ...], messages: tuple[Message, ...]) -> Received | CallFailed:
        going.tries += 1
        ask = going.ask

        def corrupt(reply: Reply, call: int) -> Corrupted:
            if ask.cause == "judge":
                return Corrupted(reply.text)
            return self.terms.corrupt(reply, subtasks, ask.context.attempt, call)

        return await self.caller.send(messages, ask, going.faults, going.tries, corrupt)

    def _keep(self, key: Key, going: _Going, paid: bool) -> None:
        """A request failed: it may be repeated, and the time until then is the framework's back-off."""
        if paid and going.ask.cause != "judge":
            going.ask = replace(going.ask, cause="retry")
        going.pause = self.caller.pause()
        self._failed.setdefault(key, []).append(going)

    def _remember(self, names: tuple[str, ...], ask: Ask, received: Received) -> None:
        """The last reply for these subtasks; it carries the faults of what was read for it, too."""
        read = [receipt for asked in list(self._read) if set(asked) <= set(names) for receipt in self._read.pop(asked)]
        for receipt in read:
            receipt.call = received.call
        received = replace(received, receipts=(*read, *received.receipts))
        self._last.update(dict.fromkeys(names, (ask.context.attempt, received)))


def _names(subtasks: Sequence[Subtask]) -> tuple[str, ...]:
    return tuple(subtask.name for subtask in subtasks)
