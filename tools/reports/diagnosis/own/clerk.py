"""A careful pattern as a user writes it: a boundary and a loop of its own, over the suite's runner of procedures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bench.record.form import Form
from bench.run.trial.proposal import Proposal
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Call, ProcedureStep
from bench.worlds.run.patterns.boundary import Boundary
from bench.worlds.run.patterns.calling import ToolCaller
from bench.worlds.run.patterns.judging import Judging
from bench.worlds.run.patterns.memory import StepEffect
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner

FORM = Form(remedies=True)


class Verifier:
    """Holds each proposal against its schema, the pack's rules and the policy."""

    def __init__(self, workbench: Workbench):
        self._workbench = workbench

    def admit(self, proposal: Proposal, value: Any, effects: Callable[[], Iterable[Call]]) -> Rejected | None:
        rejected = self._workbench.verify(proposal)
        if rejected or value is None:
            return rejected
        for call in effects():
            if why := self._denial(call):
                self._workbench.reject(proposal, why)
                return Rejected(proposal.names[0], "check", why, proposal.text)
        self._workbench.commit(proposal)
        return None

    def _denial(self, call: Call) -> str:
        world = self._workbench.world
        verdict = world.verdict(call.tool, call.arguments) if call.tool in world.tools else None
        return verdict.why or "the policy denies it" if verdict and verdict.decision == "deny" else ""


class Signal:
    """Tells why a proposal was rejected, and why a step came to nothing."""

    def for_proposer(self, rejected: Rejected) -> Rejected | None:
        return rejected

    def reported_reason(self, why: str) -> str:
        return why


class Commit:
    """Makes each effect under a key of its own, on the versions that the step has read."""

    remembers = True

    def idempotency_key(self, effect: StepEffect) -> str | None:
        return f"clerk {effect.key}"

    def undo_key(self, effect: StepEffect) -> str | None:
        return f"clerk undoes {effect.key}"

    def expected_versions(self, effect: StepEffect) -> Mapping[str, int] | None:
        return effect.versions


class Clerk(ProcedureRunner):
    def __init__(self, task: Task, workbench: Workbench):
        super().__init__(task, workbench, FORM)
        own: Any = Boundary(Verifier(workbench), Signal(), Commit())  # type: ignore[arg-type]  # they have its methods
        self._boundary = self._world.exchanged(own)
        self._calling = ToolCaller(self._world, FORM, self.memory, self._boundary.commit)
        self._judging = Judging(task, workbench, FORM, self.memory, self._calling, self._boundary)

    async def work(self, step: ProcedureStep) -> None:
        why = await self.attempt(step)
        await self.settle(step, why)


async def careful(task: Task, workbench: Workbench) -> None:
    clerk = Clerk(task, workbench)
    async for ready in clerk.rounds():
        await clerk.work(ready[0])
