"""The workbench: all that an architecture can do. It renders, asks, injects, verifies, commits and logs.

    propose      ask a model for the outputs of one or more subtasks, in one call
    endpoint         let a framework make its calls itself, through a measuring endpoint
    verify       hold a proposal against schemas and checks: the first Rejected, or None
    commit       write a verified proposal to the state
    commit_unverified      write a proposal to the state unverified; `checkpoint` verifies later what was handed on
    skip, invalidate commit without a model what is not needed; take back what a validating subtask found wrong

An architecture decides only when a failure is detected and what is run again; that is why it is short.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bench.errors import GaveUp
from bench.models.base import Message, Reply, RequestContext
from bench.runtime import verification as boundary
from bench.runtime.caller import Ask, Caller, Corrupted, Received
from bench.runtime.effects import dump
from bench.runtime.endpoint_session import EndpointSession, Host, Judges, Terms, never, no_server
from bench.runtime.events import Answered, Cause, Committed, Event, Judged
from bench.runtime.faults import FaultSchedule, Receipt
from bench.runtime.injection import Injection
from bench.runtime.prompt import Repair, render
from bench.runtime.proposal import Part, Proposal, parts_of, reread
from bench.runtime.schema import answer_schema
from bench.runtime.state import Source, State, Version
from bench.runtime.verification import Rejected, Unreadable, Verdict
from bench.scenario import Answer, Json, Output, Subtask, Task
from bench.seeding import seed_of

Line = Callable[[Sequence[Message]], Awaitable[Reply]]
"""The line to the model that an agent is given: messages in, a reply out, all the accounting behind it."""

Agent = Callable[[Sequence[Message], Line], Awaitable[str]]
"""Who conducts a call: given the rendered messages and the line, it returns the text to be read."""

UNREADABLE = ("empty", "refusal", "not_json", "cut_off")
"""Reasons that concern a whole reply: whatever fault it carried has been seen."""


async def direct(messages: Sequence[Message], line: Line) -> str:
    """The agent that sends the messages as they are, once."""
    return (await line(messages)).text


@dataclass(frozen=True)
class Settings:
    """What an experiment decides for all its trials. `max_attempts` bounds the proposals for one subtask in one trial."""

    max_attempts: int = 3
    repair: Repair = "reason"


@dataclass(frozen=True)
class Place:
    """Where in the experiment a trial stands: all that its draws and its models' seeds depend on, and the arm, on which
    they never depend."""

    seed: int
    scenario: str
    repetition: int
    arm: str = ""


class Workbench:
    def __init__(
        self,
        task: Task,
        place: Place,
        settings: Settings,
        caller: Caller,
        schedule: FaultSchedule,
        wrong_outputs: Mapping[str, Sequence[Json]],
        emit: Callable[[Event], None],
        keep: Callable[[str], str],
        host: Host = no_server,
    ):
        self._task, self._place, self._settings = task, place, settings
        self._caller, self._schedule, self._emit, self._keep = caller, schedule, emit, keep
        self._host = host
        self._state = State(task.documents)
        self._injection = Injection(task, self._state, schedule, wrong_outputs)
        self._attempts: dict[str, int] = {}
        self._failed: set[str] = set()
        self._carried: dict[str, tuple[Receipt, ...]] = {}

    @property
    def max_attempts(self) -> int:
        """How often one subtask may be asked for in one trial; a framework's own budget is to be set to it."""
        return self._settings.max_attempts

    @property
    def place(self) -> Place:
        """Where this trial stands: to be shown, never to be decided by."""
        return self._place

    def attempts_left(self, *subtasks: Subtask) -> int:
        """How often a framework may still ask for these subtasks in this trial. Raises GaveUp where it may not."""
        names = [subtask.name for subtask in subtasks]
        left = self.max_attempts - self._attempts_at(names)
        if left < 1:
            raise GaveUp(names, f"no accepted output in {self.max_attempts} attempts")
        return left

    def done(self, subtask: Subtask) -> bool:
        """Whether the state holds an output of this subtask: the completion signal."""
        return subtask.name in self._state

    async def propose(self, *subtasks: Subtask, repair: Rejected | None = None, by: Agent = direct) -> Proposal:
        """Ask a model for these subtasks' outputs, in one call. `repair` is told to it as the repair setting says.

        Raises GaveUp where a subtask's attempts are used up, CallFailed where the endpoint cannot be used.
        """
        ask = replace(self._next_attempt([subtask.name for subtask in subtasks]), schema=answer_schema(subtasks))
        attempt = ask.context.attempt
        sources = self._sources(subtasks)
        inputs = {source.name: self._text_of(source) for source in sources}
        inputs, receipts = self._injection.read(subtasks, inputs, attempt)
        received: list[Received] = []

        def corrupt(reply: Reply, call: int) -> Corrupted:
            return self._injection.corrupt(reply, subtasks, attempt, call)

        async def line(messages: Sequence[Message]) -> Reply:
            received.append(await self._caller.call(messages, ask, corrupt))
            return Reply(received[-1].text, received[-1].finish)

        text = await by(render(self._task, subtasks, inputs, repair, self._settings.repair), line)
        last = received[-1]
        for receipt in receipts:
            receipt.call = last.call
        parts = parts_of(text, last.finish, subtasks)
        carried = (*receipts, *(receipt for one in received for receipt in one.receipts))
        return Proposal(subtasks, attempt, last.call, text, parts, sources, carried)

    @asynccontextmanager
    async def endpoint(
        self, *subtasks: Subtask, judges: Judges = never, host: Host | None = None
    ) -> AsyncIterator[EndpointSession]:
        """Let a framework make the calls for these subtasks itself, over HTTP; `judges` tells judge calls by their messages,
        `host` serves it elsewhere than at a port of its own.

        What it returns is then proposed by `EndpointSession.proposal`, and verified and committed like any other. Where the
        framework ends with an exception after its last call had failed, GaveUp or that CallFailed is raised in its place.
        """
        endpoint = EndpointSession(subtasks, judges, self._terms(), self._caller)
        try:
            async with (host or self._host)(endpoint) as endpoint.root:
                with self._caller.elsewhere():
                    yield endpoint
        except Exception as error:
            endpoint.explain(error)
            raise
        endpoint.check()

    def verify(self, proposal: Proposal, sufficiency: bool = False) -> Rejected | None:
        """Hold each part against its schema, its checks and what a validating part found; with `sufficiency` also ask whether
        it is strong enough to build on. Leaves a verdict for each part; returns the first rejection, with the reply."""
        values = {name: part.value for name, part in proposal.parts.items()}
        verdicts = self._judge(proposal.subtasks, values)
        if sufficiency:
            verdicts = {name: self._sufficient(name, verdict) for name, verdict in verdicts.items()}
        for name, verdict in verdicts.items():
            self._leave_verdict(name, proposal.call, verdict, proposal.receipts)
        rejected = _first_rejected(verdicts)
        return replace(rejected, reply=proposal.text) if rejected else None

    def reject(self, proposal: Proposal, detail: str) -> None:
        """Leave the verdict of a framework that rejected a proposal by a judgment of its own."""
        for subtask in proposal.subtasks:
            self._leave_verdict(subtask.name, proposal.call, Rejected(subtask.name, "check", detail), proposal.receipts)

    def commit(self, proposal: Proposal) -> None:
        """Write a verified proposal to the state."""
        self._write(proposal, verified=True)

    def commit_unverified(self, proposal: Proposal) -> None:
        """Write a proposal to the state as it came: later subtasks read it unverified."""
        self._write(proposal, verified=False)
        self._failed -= {subtask.name for subtask in proposal.subtasks}

    def checkpoint(self, stage: Sequence[Subtask]) -> Rejected | None:
        """Verify what the state holds for these subtasks; where nothing is rejected, it is all committed."""
        versions = {subtask.name: self._version(subtask.name) for subtask in stage}
        verdicts = self._judge(stage, {name: version.value for name, version in versions.items()})
        for name, verdict in verdicts.items():
            self._leave_verdict(name, versions[name].call, verdict, self._carried.get(name, ()))
        rejected = _first_rejected(verdicts)
        if rejected is None:
            for version in versions.values():
                self._log_commit(version, verified=True)
        return rejected

    def skip(self, subtask: Subtask) -> bool:
        """Commit, without a model, the output of a subtask that the outputs so far make needless; whether it was so."""
        outputs = self._outputs(subtask.reads)
        read = [name for name in subtask.reads if name not in self._task.documents]
        needless = subtask.skip(outputs) if subtask.skip and len(outputs) == len(read) else None
        if needless is None:
            return False
        value = needless.model_dump(mode="json")
        self._log_commit(self._state.put(subtask.name, dump(value), value, None, self._sources([subtask])), verified=True)
        return True

    def finding(self, subtask: Subtask) -> Rejected | None:
        """What this subtask's committed output says against an earlier subtask's."""
        output = self._outputs([subtask.name]).get(subtask.name)
        found = boundary.finding(subtask, output) if output else None
        return replace(found, reply=self._version(found.subtask).text) if found else None

    def invalidate(self, found: Rejected) -> None:
        """Take back an output that was found wrong, and all that was made from it."""
        version = self._version(found.subtask)
        self._leave_verdict(found.subtask, version.call, found, self._carried.get(found.subtask, ()))
        self._state.withdraw(found.subtask)

    def answer(self) -> Answer | None:
        """The final answer; None where an output in the state does not fit its schema. Raises RuntimeError where one lacks."""
        names = [subtask.name for subtask in self._task.subtasks]
        versions = [self._version(name) for name in names]
        self._emit(Answered(tuple((version.subtask, version.number) for version in versions)))
        outputs = self._outputs(names)
        return outputs if len(outputs) == len(names) else None

    def close(self, answered: bool) -> None:
        """Say how each delivered fault ended."""
        calls = self._state.lineage() if answered else set()
        self._schedule.close(answered, lambda receipt: receipt.call in calls)

    def _terms(self) -> Terms:
        return Terms(
            ask=lambda names, again: self._next_attempt(names, lent=True, again=again),
            judge=lambda names: self._ask(names, max(self._attempts_at(names), 1), "judge"),
            prompt=self._prompt,
            corrupt=self._injection.corrupt,
            propose=self._proposal,
        )

    def _prompt(self, subtasks: Sequence[Subtask]) -> tuple[tuple[Message, ...], tuple[Receipt, ...]]:
        names = [subtask.name for subtask in subtasks]
        inputs = {source.name: self._text_of(source) for source in self._sources(subtasks)}
        inputs, receipts = self._injection.read(subtasks, inputs, self._attempts_at(names) + 1)
        return render(self._task, subtasks, inputs, None, "none"), receipts

    def _proposal(self, text: str, subtasks: Sequence[Subtask], attempt: int, received: Received) -> Proposal:
        parts = parts_of(text, received.finish, subtasks)
        sources = self._sources(subtasks)
        return Proposal(tuple(subtasks), attempt, received.call, text, parts, sources, received.receipts)

    def _next_attempt(self, names: Sequence[str], *, lent: bool = False, again: bool = False) -> Ask:
        """Where the calls are a framework's (`lent`) it bounds its attempts itself; an attempt made `again` on the same
        endpoint follows one that did not do."""
        attempt = self._attempts_at(names) + 1
        if attempt > self.max_attempts and not lent:
            raise GaveUp(names, f"no accepted output in {self.max_attempts} attempts")
        failed = again or bool(self._failed & set(names))
        cause: Cause = "first" if attempt == 1 else "retry" if failed else "rerun"
        self._attempts.update(dict.fromkeys(names, attempt))
        return self._ask(names, attempt, cause)

    def _attempts_at(self, names: Sequence[str]) -> int:
        return max(self._attempts.get(name, 0) for name in names)

    def _ask(self, names: Sequence[str], attempt: int, cause: Cause) -> Ask:
        place = self._place
        seed = seed_of(place.seed, place.scenario, place.repetition, attempt) % 2**31
        context = RequestContext(place.scenario, tuple(names), place.repetition, attempt, place.arm, judging=cause == "judge")
        return Ask(context, cause, seed)

    def _sources(self, subtasks: Sequence[Subtask]) -> tuple[Source, ...]:
        """What these subtasks read from outside the call, each once, in the order in which it is read."""
        together = {subtask.name for subtask in subtasks}
        names = dict.fromkeys(name for subtask in subtasks for name in subtask.reads if name not in together)
        return tuple(source for name in names if (source := self._state.source(name)))

    def _text_of(self, source: Source) -> str:
        return self._version(source.name).text if source.version else self._task.documents[source.name]

    def _version(self, name: str) -> Version:
        version = self._state.current(name)
        if version is None:
            raise RuntimeError(f"the architecture left '{name}' without an output")
        return version

    def _outputs(self, names: Sequence[str]) -> dict[str, Output]:
        """Those of these outputs in the state that fit their schemas."""
        found = {}
        for name in names:
            version = self._state.current(name)
            output = boundary.validate(self._task.subtask(name), version.value) if version else None
            if isinstance(output, Output):
                found[name] = output
        return found

    def _judge(self, subtasks: Sequence[Subtask], values: Mapping[str, Json | Unreadable]) -> dict[str, Verdict]:
        outside = [name for subtask in subtasks for name in subtask.reads if name not in values]
        return boundary.judge(subtasks, values, self._task.documents, self._outputs(outside))

    def _sufficient(self, name: str, verdict: Verdict) -> Verdict:
        if isinstance(verdict, Rejected):
            return verdict
        return boundary.insufficient(self._task.subtask(name), verdict) or verdict

    def _leave_verdict(self, name: str, call: int | None, verdict: Verdict, receipts: Sequence[Receipt]) -> None:
        if not isinstance(verdict, Rejected):
            self._failed.discard(name)
            self._emit(Judged(call, name, accepted=True))
            return
        self._failed.add(name)
        self._emit(Judged(call, name, accepted=False, reason=verdict.reason, detail=verdict.detail))
        for receipt in receipts:
            if receipt.due.subtask == name or verdict.reason in UNREADABLE:
                receipt.saw()

    def _write(self, proposal: Proposal, verified: bool) -> None:
        for subtask in proposal.subtasks:
            part = proposal.parts.get(subtask.name, Part("", Unreadable("empty", "the reply says nothing of it")))
            text, receipts = self._injection.write(subtask, part, proposal.attempt, proposal.call)
            written = reread(text) if text != part.text else part
            version = self._state.put(subtask.name, written.text, written.value, proposal.call, proposal.made_from)
            self._carried[subtask.name] = (*proposal.receipts, *receipts)
            self._log_commit(version, verified)

    def _log_commit(self, version: Version, verified: bool) -> None:
        made_from = tuple((source.name, source.version, source.digest) for source in version.made_from)
        self._keep(version.text)
        self._emit(Committed(version.subtask, version.number, version.call, verified, version.digest, made_from))


def _first_rejected(verdicts: Mapping[str, Verdict]) -> Rejected | None:
    return next((verdict for verdict in verdicts.values() if isinstance(verdict, Rejected)), None)
