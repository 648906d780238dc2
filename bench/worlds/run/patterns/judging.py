"""A step's judgment: read the state of the world, ask a model, and check its proposal at the boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bench.common.digests import digest_of
from bench.common.errors import GaveUp
from bench.record.form import Form
from bench.record.journal import dump
from bench.run.trial.proposal import Proposal
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Subtask, Task
from bench.worlds.run.environment import Call, Facts, ProcedureStep
from bench.worlds.run.environment.procedure import NotKnown
from bench.worlds.run.patterns.boundary import Boundary
from bench.worlds.run.patterns.calling import ToolCaller
from bench.worlds.run.patterns.memory import Memory
from bench.worlds.run.runtime.actions import WorldActions

T = TypeVar("T")
PIN_PREFIX = "pinned "
"""The beginning of the name in the store under which a step's decision is pinned."""


class Judging:
    """Makes the judgments of one trial's steps."""

    def __init__(self, task: Task, workbench: Workbench, form: Form, memory: Memory, calling: ToolCaller, boundary: Boundary):
        self._task, self._workbench, self._form = task, workbench, form
        self._world: WorldActions = workbench.world
        self._memory, self._calling, self._boundary = memory, calling, boundary

    def facts(self, step: ProcedureStep) -> Facts:
        """Return the facts that are known while this step runs."""
        return self._memory.facts(step.name, self._world.arrivals())

    def ask_pack(self, function: Callable[..., T], step: ProcedureStep, *more: Any) -> T:
        """Call a function of the pack with the facts of a step.

        Raises NotKnown if a fact is missing, or if the boundary let an output pass that the function cannot handle.
        """
        facts = self.facts(step)
        try:
            return function(facts, *more)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if self._form.lets_misfits_pass and not isinstance(error, NotKnown):
                raise NotKnown(f"{step.name}: {error}") from error
            raise

    def effects(self, step: ProcedureStep) -> list[Call]:
        """Return the calls of a step's effects. A judgment can name a tool by a value that is no text; the world refuses that
        call."""
        return self.ask_pack(lambda facts: [replace(call, tool=str(call.tool)) for call in step.effects(facts)], step)

    async def read(self, step: ProcedureStep) -> str:
        """Make the calls that a step reads with, and remember their results. An earlier decision stays if the results are the
        same. Return why a call failed; "" if none did."""
        read: dict[str, Any] = {}
        versions: dict[str, int] = {}
        for name, call in self.ask_pack(step.reads, step).items():
            acted = await self._calling.read(step, call)
            if not acted.ok:
                return "failed"
            read[name] = acted.result.model_dump(mode="json")
            versions.update(acted.versions or {})
        earlier = self._memory.step_memory(step.name)
        decision_holds = earlier.judged and earlier.read == read
        self._memory.update(step.name, read=read, versions=versions, judged=decision_holds)
        return ""

    async def decide(self, step: ProcedureStep) -> str:
        """Ask the judgment of a step until an output is accepted, and return "". Otherwise return "rejected" if no attempt is
        left, or "taken as success" if the signal does not tell the proposer of the rejection. A pinned decision is not asked
        for again."""
        subtask = self._task.subtask(step.judgment)
        if self._form.pins and (pin := self._pin_of(step, subtask)):
            self._memory.update(step.name, judged=True, decided=pin["decided"], by=pin["by"])
            return ""
        repair: Rejected | None = None
        while True:
            try:
                proposal = await self._propose_output(subtask, repair, self._documents(step, subtask))
            except GaveUp:
                if not self._form.remedies:
                    raise
                return "rejected"
            value = self._value(proposal, subtask)
            rejected = self._boundary.verifier.admit(proposal, value, partial(self._calls_caused_by, step, value))
            if rejected is None:
                by = self._workbench.model if self._form.remedies or self._form.pins else ""
                if self._form.pins:
                    state = self._state_of(step, subtask)
                    self._world.store.put(PIN_PREFIX + step.name, {"of": state, "decided": value, "by": by})
                self._memory.update(step.name, judged=True, decided=value, by=by)
                return ""
            repair = self._boundary.signal.for_proposer(rejected)
            if repair is None:
                self._memory.update(step.name, judged=value is not None, decided=value)
                return "taken as success"

    def _pin_of(self, step: ProcedureStep, subtask: Subtask) -> Any:
        """Return the decision for the present state, with the model version that made it; None if there is none."""
        pin: Any = self._world.store.get(PIN_PREFIX + step.name)
        return pin if pin and pin["of"] == self._state_of(step, subtask) else None

    def _state_of(self, step: ProcedureStep, subtask: Subtask) -> str:
        """Return the digest of the documents that the judgment sees."""
        return digest_of(dump(dict(self._documents(step, subtask))))

    async def _propose_output(self, subtask: Subtask, repair: Rejected | None, documents: Mapping[str, Any]) -> Proposal:
        """Return the model's proposal. With several children it is the last child's, or with remedies the first child's, who
        has priority."""
        if not self._form.children:
            return await self._workbench.propose(subtask, repair=repair, documents=documents)
        by_child = await self._workbench.sample(subtask, count=self._form.children, repair=repair, documents=documents)
        return by_child[0 if self._form.remedies else -1]

    def _calls_caused_by(self, step: ProcedureStep, value: Any) -> list[Call]:
        """Return the calls that this output would cause."""
        facts = self.facts(step)
        facts_with_output = replace(facts, decided={**facts.decided, step.name: value})
        return self.ask_pack(lambda _: list(step.effects(facts_with_output)), step)

    def _documents(self, step: ProcedureStep, subtask: Subtask) -> Mapping[str, Any]:
        """Return the documents that the judgment sees beside the task's documents."""
        if step.documents:
            return self.ask_pack(step.documents, step)
        task_names = {*self._task.documents, *(other.name for other in self._task.subtasks)}
        names = [name for name in subtask.reads if name not in task_names]
        return self.ask_pack(lambda facts: {name: facts.read[name] for name in names}, step)

    def _value(self, proposal: Proposal, subtask: Subtask) -> Any:
        """Return the output as JSON; None if it does not fit its schema. A boundary that lets misfits pass accepts any
        object."""
        part = proposal.parts.get(subtask.name)
        raw = part.value if part else None
        try:
            return subtask.output.model_validate(raw).model_dump(mode="json")
        except ValueError:
            return raw if isinstance(raw, dict) and self._form.lets_misfits_pass else None
