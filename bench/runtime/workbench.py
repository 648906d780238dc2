"""The workbench: all that an architecture can do. It renders, asks, injects, verifies, commits and logs.

    propose            ask a model for the outputs of one or more subtasks
    sample             ask for several samples of them at the same time
    endpoint           let a framework make its calls itself, through a measuring endpoint
    verify             hold a proposal against schemas and checks: the first Rejected, or None
    commit             write a verified proposal to the state
    commit_unverified  write a proposal as it came; `checkpoint` verifies later what was written so
    skip, invalidate   commit without a model what is not needed; take back what a validating subtask found wrong
    ready, add         what can be asked now; a subtask more, made at run time
    output             what the state holds for a subtask
    world              what can be done in the world that the task stands in, where it has one

An architecture decides only when a failure is detected and what is run again; that is why it is short. Everything may be done
at the same time: `asyncio.gather` over proposals of what is ready.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bench.errors import GaveUp
from bench.runtime import verification
from bench.runtime.asking import Asking
from bench.runtime.causes import CallLimit
from bench.runtime.effects import dump
from bench.runtime.endpoint_session import EndpointSession, IsJudging, Server, never
from bench.runtime.proposal import Proposal
from bench.runtime.reply import ReplyPart
from bench.runtime.session_host import SessionHost, names_of, served
from bench.runtime.verification import Rejected
from bench.scenario import Json, Output, Subtask


class Workbench(Asking):
    """What an architecture sees of its trial."""

    @property
    def world(self) -> Any:
        """What can be done in the world that the task stands in. It is a `bench.worlds.runtime.actions.WorldActions`.

        Raises RuntimeError where the scenario has no world.
        """
        if self._trial.surroundings.actions is None:
            raise RuntimeError("this scenario has no world; run the architecture on a pack that declares an environment")
        return self._trial.surroundings.actions

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
        return self._state.ready

    def add(self, subtask: Subtask, reference: Json = None) -> None:
        """A subtask made at run time. The answer is made of the task's own alone (`Task.answer`). A simulated model answers it
        by this `reference`, else by the smallest output that fits its schema.

        Raises ValueError where its name is taken, or what it reads does not exist.
        """
        self._trial.add(subtask, reference)

    def output(self, subtask: Subtask) -> Output | None:
        """The output of this subtask in the state; None where there is none, or it does not fit its schema."""
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
        """Let a framework make the calls for these subtasks itself, over HTTP; `judges` tells judge calls by their messages,
        `server` serves it elsewhere than at a port of its own. Its replies are verified in shadow where they are `judged`.

        What it returns is then proposed by `EndpointSession.proposal`, and verified and committed like any other. Where the
        framework ends with an exception after its last call had failed, GaveUp or that CallFailed is raised in its place.
        """
        host, turns = SessionHost(self._trial), self._trial.turns()
        session = EndpointSession(subtasks, host, self._trial.caller, turns, judges, limit, judged)
        async with served(self._trial, session, server):
            yield session

    def verify(self, proposal: Proposal, sufficiency: bool = False) -> Rejected | None:
        """Hold each part against its schema, its checks and what a validating part found; with `sufficiency` also ask whether
        it is strong enough to build on. Leaves a verdict for each part; returns the first rejection, with the reply."""
        rejected = self._trial.verifier.verify(proposal, sufficiency)
        (self._trial.accepted.discard if rejected else self._trial.accepted.add)(proposal)
        return rejected

    def reject(self, proposal: Proposal, detail: str) -> None:
        """Leave the verdict of a framework that rejected a proposal by a judgment of its own."""
        self._trial.accepted.discard(proposal)
        for subtask in proposal.subtasks:
            rejected = Rejected(subtask.name, "check", detail)
            self._trial.verifier.leave(subtask.name, proposal.calls, rejected, proposal.receipts)

    def commit(self, proposal: Proposal) -> None:
        """Write a verified proposal to the state. Raises RuntimeError where it was not verified, or was rejected."""
        if proposal not in self._trial.accepted:
            names = " + ".join(proposal.names)
            raise RuntimeError(f"commit of '{names}', which was not verified or was rejected; verify it, or commit_unverified")
        self._trial.write(proposal, verified=True)

    def commit_unverified(self, proposal: Proposal) -> None:
        """Write a proposal to the state as it came: later subtasks read it unverified."""
        self._trial.write(proposal, verified=False)

    def checkpoint(self, stage: Sequence[Subtask]) -> Rejected | None:
        """Verify what the state holds for these subtasks; where nothing is rejected, it is all committed."""
        rejected = self._trial.verifier.verify_stage(stage)
        if rejected is None:
            for subtask in stage:
                self._trial.log_commit(self._trial.verifier.version(subtask.name), verified=True)
        return rejected

    def skip(self, subtask: Subtask) -> bool:
        """Commit, without a model, the output of a subtask that the outputs so far make needless; whether it was so."""
        if subtask.skip is None:
            return False
        read = [name for name in subtask.reads if name not in self._state.documents]
        outputs = self._trial.verifier.outputs(read)
        needless = self._trial.checks.needless(subtask, outputs) if len(outputs) == len(read) else None
        if needless is None:
            return False
        value = needless.model_dump(mode="json")
        version = self._state.put(subtask.name, ReplyPart(dump(value), value), (), self._state.sources([subtask]))
        self._trial.log_commit(version, verified=True)
        return True

    def finding(self, subtask: Subtask) -> Rejected | None:
        """What this subtask's committed output says against an earlier subtask's."""
        output = self.output(subtask) if subtask.finds else None
        rejected = verification.finding(subtask, output) if output else None
        return replace(rejected, reply=self._trial.verifier.version(rejected.subtask).text) if rejected else None

    def invalidate(self, rejected: Rejected) -> None:
        """Take back an output that was found wrong, and all that was made from it."""
        version, receipts = (
            self._trial.verifier.version(rejected.subtask),
            self._trial.verifier.carried.get(rejected.subtask, ()),
        )
        self._trial.verifier.leave(rejected.subtask, version.calls, rejected, receipts)
        self._state.withdraw(rejected.subtask)
