"""The workbench: all that an architecture can do. It renders, asks, injects, verifies, commits and logs.

    propose            ask a model for the outputs of one or more subtasks
    sample             ask for several samples of them at the same time
    endpoint           let a framework make its calls itself, through a measuring endpoint
    outside_agent      the same for an agent that is a process of its own, over all its lives
    verify             hold a proposal against schemas and checks: the first Rejected, or None
    commit             write a verified proposal to the state
    commit_unverified  write a proposal as it came; `checkpoint` verifies later what was written so
    skip, invalidate   commit without a model what is not needed; take back what a validating subtask found wrong
    ready, add         what can be asked now; a subtask more, made at run time
    output             what the state holds for a subtask

An architecture decides only when a failure is detected and what is run again; that is why it is short. Everything may be done
at the same time: `asyncio.gather` over proposals of what is ready.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from bench.errors import GaveUp
from bench.runtime import verification
from bench.runtime.asking import Asking, Settings, names_of
from bench.runtime.caller import Caller
from bench.runtime.causes import Ask, Limit
from bench.runtime.checks import Checks
from bench.runtime.effects import dump
from bench.runtime.endpoint_session import EndpointSession, IsJudging, Server, never, no_server
from bench.runtime.events import Answered, Committed
from bench.runtime.faults import FaultSchedule, Receipt
from bench.runtime.injection import Injection
from bench.runtime.key import TrialKey
from bench.runtime.lineage import Lineage
from bench.runtime.log import TrialLog
from bench.runtime.prompt import Prompt, prompt_of
from bench.runtime.proposal import Proposal
from bench.runtime.reply import Part, reread
from bench.runtime.state import State, Version
from bench.runtime.verification import Rejected, Unreadable
from bench.scenario import Answer, Json, Output, Subtask
from bench.worlds.runtime.agent_causes import AgentCauses
from bench.worlds.runtime.agent_session import AGENT, UNASKED, AgentSession
from bench.worlds.runtime.effects import WORLD_POINTS
from bench.worlds.runtime.lasting import Lasting


class Workbench(Asking):
    def __init__(
        self,
        state: State,
        key: TrialKey,
        settings: Settings,
        caller: Caller,
        injection: Injection,
        log: TrialLog,
        server: Server = no_server,
        checks: Checks | None = None,
    ):
        super().__init__(state, key, settings, caller, injection, log, checks)
        self._log, self._server = log, server
        self._in_cases: dict[tuple[str, str], int] = {}
        self._accepted: set[Proposal] = set()
        self._agent: AgentSession | None = None
        self.key, self.lasting = key, Lasting()

    def attempts_left(self, *subtasks: Subtask) -> int:
        """How often a framework may still ask for these subtasks in this trial. Raises GaveUp where it may not."""
        names = names_of(subtasks)
        left = self.max_attempts - self._causes.attempts(names)
        if left < 1:
            raise GaveUp(names, f"no accepted output in {self.max_attempts} attempts")
        return left

    def done(self, subtask: Subtask) -> bool:
        """Whether the state holds an output of this subtask: the completion signal."""
        return subtask.name in self._state

    def ready(self) -> tuple[Subtask, ...]:
        """The subtasks that can be asked now: not done, and all that they read is there."""
        return tuple(one for one in self._state.subtasks if not self.done(one) and not self._state.lacks(one))

    def add(self, subtask: Subtask, reference: Json = None) -> None:
        """A subtask made at run time. The answer is made of the task's own alone (`Task.answer`). A simulated model answers it
        by this `reference`, else by the smallest output that fits its schema.

        Raises ValueError where its name is taken, or what it reads does not exist.
        """
        self._state.add(subtask)
        if reference is not None:
            self._causes.references[subtask.name] = reference

    def output(self, subtask: Subtask) -> Output | None:
        """The output of this subtask in the state; None where there is none, or it does not fit its schema."""
        return self._verifier.outputs([subtask.name]).get(subtask.name)

    @asynccontextmanager
    async def endpoint(
        self,
        *subtasks: Subtask,
        judges: IsJudging = never,
        server: Server | None = None,
        limit: Limit = "calls",
        judged: bool = True,
    ) -> AsyncIterator[EndpointSession]:
        """Let a framework make the calls for these subtasks itself, over HTTP; `judges` tells judge calls by their messages,
        `server` serves it elsewhere than at a port of its own. Its replies are verified in shadow where they are `judged`.

        What it returns is then proposed by `EndpointSession.proposal`, and verified and committed like any other. Where the
        framework ends with an exception after its last call had failed, GaveUp or that CallFailed is raised in its place.
        """
        turns = self._turns()
        session = EndpointSession(subtasks, self, self._caller, turns, judges, limit, judged)
        try:
            async with (server or self._server)(session) as session.root:
                with self._caller.elsewhere():
                    yield session
        except Exception as error:
            session.explain(error)
            raise
        session.check()

    @asynccontextmanager
    async def outside_agent(self, server: Server | None = None) -> AsyncIterator[AgentSession]:
        """The model's door of an agent that is a process of its own, for all its lives: open it once, and keep it open over
        crashes. `session.base_url()` and `session.api_key` are for the agent; `server` serves it elsewhere than at a port of
        its own.

        What the agent asks for is the pseudo-subtask `agent`, which nobody verifies. At the end the calls that its last reply
        stands on are committed as its output, so that their tokens are in the answer. Where it ends with an exception after
        its last call had failed, GaveUp or that CallFailed is raised in its place.
        """
        self.add(AGENT, UNASKED)
        self._injection.wordy.add(AGENT.name)
        turns = self._turns()
        session = self._agent = AgentSession(self, self._caller, turns, AgentCauses(self._causes, self._log))
        try:
            async with (server or self._server)(session) as session.root:
                with self._caller.elsewhere():
                    yield session
        except Exception as error:
            session.explain(error)
            raise
        session.check()
        if proposal := session.output():
            self.commit_unverified(proposal)

    def verify(self, proposal: Proposal, sufficiency: bool = False) -> Rejected | None:
        """Hold each part against its schema, its checks and what a validating part found; with `sufficiency` also ask whether
        it is strong enough to build on. Leaves a verdict for each part; returns the first rejection, with the reply."""
        rejected = self._verifier.verify(proposal, sufficiency)
        (self._accepted.discard if rejected else self._accepted.add)(proposal)
        return rejected

    def reject(self, proposal: Proposal, detail: str) -> None:
        """Leave the verdict of a framework that rejected a proposal by a judgment of its own."""
        self._accepted.discard(proposal)
        for subtask in proposal.subtasks:
            rejected = Rejected(subtask.name, "check", detail)
            self._verifier.leave(subtask.name, proposal.calls, rejected, proposal.receipts)

    def commit(self, proposal: Proposal) -> None:
        """Write a verified proposal to the state. Raises RuntimeError where it was not verified, or was rejected."""
        if proposal not in self._accepted:
            names = " + ".join(proposal.names)
            raise RuntimeError(f"commit of '{names}', which was not verified or was rejected; verify it, or commit_unverified")
        self._write(proposal, verified=True)

    def commit_unverified(self, proposal: Proposal) -> None:
        """Write a proposal to the state as it came: later subtasks read it unverified."""
        self._write(proposal, verified=False)

    def checkpoint(self, stage: Sequence[Subtask]) -> Rejected | None:
        """Verify what the state holds for these subtasks; where nothing is rejected, it is all committed."""
        rejected = self._verifier.verify_stage(stage)
        if rejected is None:
            for subtask in stage:
                self._log_commit(self._verifier.version(subtask.name), verified=True)
        return rejected

    def skip(self, subtask: Subtask) -> bool:
        """Commit, without a model, the output of a subtask that the outputs so far make needless; whether it was so."""
        outputs = self._verifier.outputs([name for name in subtask.reads if name not in self._state.documents])
        read = [name for name in subtask.reads if name not in self._state.documents]
        needless = self._checks.needless(subtask, outputs) if len(outputs) == len(read) else None
        if needless is None:
            return False
        value = needless.model_dump(mode="json")
        version = self._state.put(subtask.name, Part(dump(value), value), (), self._state.sources([subtask]))
        self._log_commit(version, verified=True)
        return True

    def finding(self, subtask: Subtask) -> Rejected | None:
        """What this subtask's committed output says against an earlier subtask's."""
        output = self.output(subtask)
        rejected = verification.finding(subtask, output) if output else None
        return replace(rejected, reply=self._verifier.version(rejected.subtask).text) if rejected else None

    def invalidate(self, rejected: Rejected) -> None:
        """Take back an output that was found wrong, and all that was made from it."""
        version, receipts = self._verifier.version(rejected.subtask), self._verifier.carried.get(rejected.subtask, ())
        self._verifier.leave(rejected.subtask, version.calls, rejected, receipts)
        self._state.withdraw(rejected.subtask)

    def answer(self) -> Answer | None:
        """The final answer; None where an output in the state does not fit its schema. Raises RuntimeError where one lacks."""
        names = self._state.task.answer_names
        versions = [self._verifier.version(name) for name in names]
        self._log.emit(Answered(tuple((version.subtask, version.number) for version in versions)))
        outputs = self._verifier.outputs(names)
        return outputs if len(outputs) == len(names) else None

    def crashed(self, event: int) -> None:
        """The process has died, by this event: what it held in memory is gone."""
        self.settle()
        self._state.forget()
        self._accepted.clear()
        self._verifier.carried.clear()
        self._cases.crashed(event)
        if self._agent:
            self._agent.crashed(event)

    def decisions(self) -> None:
        """The answer of a trial in a world: the last output of each judgment in each state of the world."""
        self._log.emit(Answered(tuple((name, number) for (name, _), number in self._in_cases.items())))

    def close(self, schedule: FaultSchedule, answered: bool) -> None:
        """Say how each delivered fault ended."""
        self.settle()
        calls = Lineage(self._log.events).of_answer if answered else frozenset()
        schedule.close(answered, lambda receipt: receipt.call in calls or receipt.due.fault.point in WORLD_POINTS)

    # What a session at the endpoint needs of its trial (`bench.runtime.endpoint_session.Host`).

    def next_ask(self, subtasks: Sequence[Subtask], question: Hashable, under_way: bool, limit: Limit) -> Ask:
        return self._causes.next(names_of(subtasks), question, inferred=True, limit=limit, under_way=under_way)

    def attempts(self, subtasks: Sequence[Subtask]) -> int:
        return self._causes.attempts(names_of(subtasks))

    def judge_ask(self, subtasks: Sequence[Subtask]) -> Ask:
        return self._causes.judge(names_of(subtasks))

    def prompt(self, subtasks: Sequence[Subtask], documents_alone: bool) -> tuple[Prompt, tuple[Receipt, ...]]:
        sources = self._state.sources(subtasks) if documents_alone else self._sources(subtasks)
        if documents_alone:
            sources = tuple(source for source in sources if not source.version)
        inputs = {source.name: self._state.text_of(source) for source in sources}
        inputs, receipts = self._injection.read(subtasks, inputs, self._causes.attempts(names_of(subtasks)) + 1)
        return prompt_of(self._state.task, subtasks, inputs, None, "none", self.answer_format), receipts

    def lost(self, ask: Ask, event: int) -> None:
        self._causes.failed(ask.context.subtasks, event)

    def recovered(self, event: int) -> None:
        self._causes.recovered(event)

    def settle(self, subtasks: Sequence[Subtask] | None = None) -> None:
        self._injection.settle(subtasks)

    def _write(self, proposal: Proposal, verified: bool) -> None:
        for subtask in proposal.subtasks:
            name = subtask.name
            part = proposal.parts.get(name, Part("", Unreadable("empty", "the reply says nothing of it")))
            call = proposal.calls[-1] if proposal.calls else None
            text, receipts = self._injection.write(subtask, part, proposal.attempt, call)
            written = reread(text) if text != part.text else part
            undamaged = proposal.undamaged.get(name)
            version = self._state.put(name, written, proposal.calls, proposal.made_from, undamaged)
            self._in_cases[name, proposal.case] = version.number
            self._verifier.carried[name] = (*proposal.receipts, *receipts)
            self._log_commit(version, verified)

    def _log_commit(self, version: Version, verified: bool) -> None:
        made_from = tuple((source.name, source.version, source.digest) for source in version.made_from)
        self._log.store_text(version.text)
        self._log.emit(Committed(version.subtask, version.number, version.calls, verified, version.digest, made_from))
