"""The workbench: all that an architecture can do. It renders, asks, injects, verifies, commits and logs.

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

An architecture decides only when a failure is detected and what is run again; that is why it is short. Everything can run at
the same time: `asyncio.gather` over proposals for ready subtasks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bench.common.errors import GaveUp
from bench.run.trial import verification
from bench.run.trial.answering import IsJudging, never
from bench.run.trial.asking import Asking
from bench.run.trial.causes import CallLimit
from bench.run.trial.effects import dump
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.proposal import Proposal
from bench.run.trial.reply import ReplyPart
from bench.run.trial.trial import Server
from bench.run.trial.verification import Rejected
from bench.scenario import Json, Output, Subtask
from bench.task import names_of


class Workbench(Asking):
    """What an architecture sees of its trial."""

    @property
    def world(self) -> Any:
        """Return what can be done in the task's world.

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
        """Tell whether the state holds an output of a subtask: the completion signal.

        Args:
            subtask: A subtask of the task, or one that was added.

        Returns:
            True if it does, verified or not.
        """
        return subtask.name in self._state

    def ready(self) -> tuple[Subtask, ...]:
        """Return the subtasks that can be asked now.

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
        async with session.served(server):
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
        """Log the verdict of a framework that rejected a proposal by its own judgment.

        Args:
            proposal: The rejected proposal.
            detail: Why, in one line.
        """
        self._trial.accepted.discard(proposal)
        for subtask in proposal.subtasks:
            rejected = Rejected(subtask.name, "check", detail)
            self._trial.verifier.leave(subtask.name, proposal.calls, rejected, proposal.receipts)

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
        """Write a proposal to the state as it came: later subtasks read it unverified.

        Args:
            proposal: A proposal; `checkpoint` can verify it later.
        """
        self._trial.write(proposal, verified=False)

    def checkpoint(self, stage: Sequence[Subtask]) -> Rejected | None:
        """Verify the state's outputs of these subtasks. If none is rejected, all of them are committed.

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
        """Commit, without a model, the output of a subtask that earlier outputs make needless.

        Args:
            subtask: A subtask that can be asked now.

        Returns:
            True if it was needless and is committed.
        """
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
        """Take back an output that was found wrong, and all that was made from it.

        Args:
            rejected: The rejection, as `finding` gives it.
        """
        version, receipts = (
            self._trial.verifier.version(rejected.subtask),
            self._trial.verifier.carried.get(rejected.subtask, ()),
        )
        self._trial.verifier.leave(rejected.subtask, version.calls, rejected, receipts)
        self._state.withdraw(rejected.subtask)
