"""A step's judgment: its state of the world is read, a model is asked, and what it proposes is held against the boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from bench.answers.rejections import NOT_ACCEPTED
from bench.architectures.form import Form
from bench.errors import GaveUp
from bench.runtime.proposal import Proposal
from bench.runtime.verification import Rejected
from bench.runtime.workbench import Workbench
from bench.scenario import Subtask, Task
from bench.worlds.environment import KILL_SWITCH, Call, Facts, ProcedureStep
from bench.worlds.environment.procedure import NotKnown
from bench.worlds.patterns.parts.calling import Calling
from bench.worlds.patterns.parts.memory import Memory
from bench.worlds.runtime.actions import WorldActions

CONTENT = ("check", "insufficient", "found_wrong")
"""Rejections that are no schema's."""
T = TypeVar("T")


class Judging:
    def __init__(self, task: Task, workbench: Workbench, form: Form, memory: Memory, calling: Calling):
        self._task, self._workbench, self._form = task, workbench, form
        self._world: WorldActions = workbench.world
        self._memory, self._calling = memory, calling

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
        """Ask the judgment of a step until something of it is accepted; why nothing is, or ""."""
        subtask = self._task.subtask(step.judgment)
        repair: Rejected | None = None
        while True:
            try:
                proposal = await self._workbench.propose(subtask, repair=repair, documents=self._documents(step, subtask))
            except GaveUp:
                if not self._form.remedies:
                    raise
                return "rejected"
            rejected = self._verify(step, subtask, proposal)
            if rejected is None:
                return ""
            if self._form.tells == "as_success":
                value = self._value(proposal, subtask)
                self._memory.keep(step.name, judged=value is not None, decided=value)
                return "taken as success"
            repair = rejected if self._form.tells == "typed" else replace(rejected, detail=NOT_ACCEPTED)

    def _verify(self, step: ProcedureStep, subtask: Subtask, proposal: Proposal) -> Rejected | None:
        """Hold a proposal against the boundary, as strong as it is, and commit what passes."""
        value, rejected = self._value(proposal, subtask), self._workbench.verify(proposal)
        if rejected and (value is None or self._form.holds("business_rule" if rejected.reason in CONTENT else "schema")):
            return rejected
        if why := self._against_policy(step, value):
            self._workbench.reject(proposal, why)
            return Rejected(subtask.name, "check", why, proposal.text)
        if rejected:
            self._workbench.commit_unverified(proposal)
        else:
            self._workbench.commit(proposal)
        self._memory.keep(step.name, judged=True, decided=value, by=self._workbench.model if self._form.remedies else "")
        return None

    def _against_policy(self, step: ProcedureStep, value: Any) -> str:
        """What the policy denies of the effects that this output would have, or ""."""
        if not self._form.holds("policy"):
            return ""
        facts = self.facts(step)
        would = replace(facts, decided={**facts.decided, step.name: value})
        for call in self.ask_pack(lambda _: step.effects(would), step):
            if call.tool not in self._world.tools:
                continue  # the world will refuse it
            verdict = self._world.verdict(call.tool, call.arguments)
            if verdict.decision == "deny" and verdict.rule != KILL_SWITCH:
                return verdict.why or verdict.rule or f"the policy denies {call.tool}"
        return ""

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
