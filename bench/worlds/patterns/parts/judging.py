"""A step's judgment: its state of the world is read, a model is asked, and what it proposes is held against the boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bench.architectures.form import Form
from bench.digests import digest_of
from bench.errors import GaveUp
from bench.runtime.proposal import Proposal
from bench.runtime.verification import Rejected
from bench.runtime.workbench import Workbench
from bench.scenario import Subtask, Task
from bench.worlds.environment import Call, Facts, ProcedureStep
from bench.worlds.environment.database import dump
from bench.worlds.environment.procedure import NotKnown
from bench.worlds.patterns.parts.boundary import Boundary
from bench.worlds.patterns.parts.calling import Calling
from bench.worlds.patterns.parts.memory import Memory
from bench.worlds.runtime.actions import WorldActions

T = TypeVar("T")
PINNED = "pinned "
"""What the decision of a step is called in the store, where decisions are pinned."""


class Judging:
    def __init__(self, task: Task, workbench: Workbench, form: Form, memory: Memory, calling: Calling, boundary: Boundary):
        self._task, self._workbench, self._form = task, workbench, form
        self._world: WorldActions = workbench.world
        self._memory, self._calling, self._boundary = memory, calling, boundary

    def facts(self, step: ProcedureStep) -> Facts:
        return self._memory.facts(step.name, self._world.arrivals())

    def ask_pack(self, function: Callable[..., T], step: ProcedureStep, *more: Any) -> T:
        """Call a function of the pack with the facts of a step.

        Raises NotKnown where a fact is missing, or where the boundary let an output pass for which the function is not made.
        """
        facts = self.facts(step)
        try:
            return function(facts, *more)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if self._form.lets_misfits_pass and not isinstance(error, NotKnown):
                raise NotKnown(f"{step.name}: {error}") from error
            raise

    def effects(self, step: ProcedureStep) -> list[Call]:
        """The calls that a step's effects are; a judgment may name a tool by what is no text, and the world refuses that."""
        return self.ask_pack(lambda facts: [replace(call, tool=str(call.tool)) for call in step.effects(facts)], step)

    async def read(self, step: ProcedureStep) -> str:
        """Read what the step reads; why it cannot be, or ""."""
        read: dict[str, Any] = {}
        versions: dict[str, int] = {}
        for name, call in self.ask_pack(step.reads, step).items():
            acted = await self._calling.read(step, call)
            if not acted.ok:
                return "failed"
            read[name] = acted.result.model_dump(mode="json")
            versions.update(acted.versions or {})
        before = self._memory.of(step.name)
        same = before.judged and before.read == read
        self._memory.keep(step.name, read=read, versions=versions, judged=same)
        return ""

    async def decide(self, step: ProcedureStep) -> str:
        """Ask the judgment of a step until something of it is accepted; why nothing is, or "". What is pinned is not asked."""
        subtask = self._task.subtask(step.judgment)
        if self._form.pins and (pin := self._pin_of(step, subtask)):
            self._memory.keep(step.name, judged=True, decided=pin["decided"], by=pin["by"])
            return ""
        repair: Rejected | None = None
        while True:
            try:
                proposal = await self._proposed(subtask, repair, self._documents(step, subtask))
            except GaveUp:
                if not self._form.remedies:
                    raise
                return "rejected"
            value = self._value(proposal, subtask)
            rejected = self._boundary.verifier.admit(proposal, value, partial(self._would_do, step, value))
            if rejected is None:
                by = self._workbench.model if self._form.remedies or self._form.pins else ""
                if self._form.pins:
                    of = self._state_of(step, subtask)
                    self._world.store.put(PINNED + step.name, {"of": of, "decided": value, "by": by})
                self._memory.keep(step.name, judged=True, decided=value, by=by)
                return ""
            repair = self._boundary.signal.heard(rejected)
            if repair is None:
                self._memory.keep(step.name, judged=value is not None, decided=value)
                return "taken as success"

    def _pin_of(self, step: ProcedureStep, subtask: Subtask) -> Any:
        """What was decided of the state that is at hand, and by which version of the model; None where nothing was."""
        pin: Any = self._world.store.get(PINNED + step.name)
        return pin if pin and pin["of"] == self._state_of(step, subtask) else None

    def _state_of(self, step: ProcedureStep, subtask: Subtask) -> str:
        return digest_of(dump(dict(self._documents(step, subtask))))

    async def _proposed(self, subtask: Subtask, repair: Rejected | None, documents: Mapping[str, Any]) -> Proposal:
        """What is proposed; of several children the last one's word, or with remedies that of the first, who has priority."""
        if not self._form.children:
            return await self._workbench.propose(subtask, repair=repair, documents=documents)
        by_child = await self._workbench.sample(subtask, count=self._form.children, repair=repair, documents=documents)
        return by_child[0 if self._form.remedies else -1]

    def _would_do(self, step: ProcedureStep, value: Any) -> list[Call]:
        """The calls that this output would have for effects."""
        facts = self.facts(step)
        would = replace(facts, decided={**facts.decided, step.name: value})
        return self.ask_pack(lambda _: list(step.effects(would)), step)

    def _documents(self, step: ProcedureStep, subtask: Subtask) -> Mapping[str, Any]:
        if step.documents:
            return self.ask_pack(step.documents, step)
        elsewhere = {*self._task.documents, *(other.name for other in self._task.subtasks)}
        names = [name for name in subtask.reads if name not in elsewhere]
        return self.ask_pack(lambda facts: {name: facts.read[name] for name in names}, step)

    def _value(self, proposal: Proposal, subtask: Subtask) -> Any:
        """The output as JSON; None where it does not fit its schema. A boundary that lets misfits pass takes any object."""
        part = proposal.parts.get(subtask.name)
        raw = part.value if part else None
        try:
            return subtask.output.model_validate(raw).model_dump(mode="json")
        except ValueError:
            return raw if isinstance(raw, dict) and self._form.lets_misfits_pass else None
