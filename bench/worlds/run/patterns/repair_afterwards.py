"""Another contract between a proposal and its effects: act first, verify afterwards, repair. The model's calls are made at
once. A monitor watches them, judges each step when its effects are made, takes back what can be taken back, and asks the model
again.

The order is all that differs from the boundary of `state_machine` and of the other patterns: the same checks, policy, people,
commit and reject signal, after the effects instead of before them. No call is held up and nobody is waited for before an
effect. An effect that is final cannot be repaired: it is left for a person, and the work goes on with it.

A monitor can die before it has judged. With remedies it keeps each proposal on which a step acted, and the policy's verdicts,
and goes on with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from typing import Any

from bench.record.form import BARE, Form
from bench.run.trial.proposal import Proposal
from bench.run.trial.reply import ReplyPart
from bench.run.trial.verification import Rejected
from bench.run.trial.workbench import Workbench
from bench.scenario import Json, Subtask, Task
from bench.worlds.run.environment import KILL_SWITCH, Call, PolicyVerdict, ProcedureStep
from bench.worlds.run.patterns.parts.boundary import Boundary, EffectCommit, ProposalVerifier
from bench.worlds.run.patterns.parts.calling import ToolCaller
from bench.worlds.run.patterns.parts.compensation import leave_for_a_person, undo_effects
from bench.worlds.run.patterns.parts.gate import DAYS
from bench.worlds.run.patterns.parts.judging import PINNED, Judging
from bench.worlds.run.patterns.parts.memory import StepEffect
from bench.worlds.run.patterns.parts.procedure_runner import ProcedureRunner
from bench.worlds.run.runtime.actions import WorldActions

VERDICTS, UNVERIFIED = "verdicts", "unverified "
"""In the store: the policy's verdicts by the number of the effect, and the proposal on which a step acted."""
STANDING = ("intended", "done")
"""States of an effect that stands, or may stand."""


async def repair_afterwards(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    runner = MonitoredRunner(task, workbench, form)
    async for ready in runner.rounds():
        await runner.work(ready[0])


class DeferredVerifier(ProposalVerifier):
    """A verifier that lets each proposal with an output pass, and keeps it for the monitor, with remedies over a crash. `step`
    is the step in progress."""

    def __init__(self, workbench: Workbench, form: Form, verifier: ProposalVerifier):
        super().__init__(workbench, form)
        self._verifier, self.step = verifier, ""
        self._passed: dict[str, Proposal] = {}

    def admit(self, proposal: Proposal, value: Any, effects: Callable[[], Iterable[Call]]) -> Rejected | None:
        if value is None:  # no call can be made of it
            return self._verifier.admit(proposal, value, effects)
        self._workbench.commit_unverified(proposal)
        self._passed[self.step] = proposal
        if self._form.remedies:
            [part] = proposal.parts.values()
            kept = {
                "attempt": proposal.attempt,
                "calls": proposal.calls,
                "text": proposal.text,
                "documents": proposal.documents,
            }
            self._world.store.put(UNVERIFIED + self.step, {**kept, "part": [part.text, part.value]})
        return None

    def proposal_acted_on(self, subtask: Subtask) -> Proposal | None:
        """Return the proposal on which the step acted; None if it acted on none."""
        kept = self._world.store.get(UNVERIFIED + self.step)
        if self.step in self._passed or not kept:
            return self._passed.get(self.step)
        parts = {subtask.name: ReplyPart(*kept["part"])}
        calls, documents = tuple(kept["calls"]), kept["documents"]
        return Proposal((subtask,), kept["attempt"], calls, kept["text"], parts, (), (), documents=documents)

    def forget(self) -> None:
        """Forget the step's proposal, so that the step is judged again."""
        self._passed.pop(self.step, None)
        if self._form.remedies:
            self._world.store.put(UNVERIFIED + self.step, None)

    def verdict(self, proposal: Proposal) -> Rejected | None:
        """Return the rejection of a proposal that has passed, by its schema or by the pack's checks; None if it is accepted."""
        [subtask] = proposal.subtasks
        part = proposal.parts.get(subtask.name)
        return self._verifier.admit(proposal, part.value if part else None, tuple)


class WatchedCommit(EffectCommit):
    """Records the policy's verdict on each effect when its call is first made, and stops no call."""

    def __init__(self, form: Form, commit: EffectCommit, world: WorldActions):
        super().__init__(form)
        self._commit, self._world, self._keeps = commit, world, form.remedies
        kept: dict[str, Json] = world.store.get(VERDICTS, {})
        self.verdicts = {int(number): PolicyVerdict(*verdict) for number, verdict in kept.items()}

    @property
    def remembers(self) -> bool:
        return self._commit.remembers

    def idempotency_key(self, effect: StepEffect) -> str | None:
        is_first = not (self._keeps and effect.number in self.verdicts)
        if is_first and effect.tool in self._world.tools:  # the world refuses any other
            self.verdicts[effect.number] = self._world.verdict(effect.tool, effect.arguments)
            if self._keeps:
                kept = {str(number): astuple(verdict) for number, verdict in self.verdicts.items()}
                self._world.store.put(VERDICTS, kept)
        return self._commit.idempotency_key(effect)

    def undo_key(self, effect: StepEffect) -> str | None:
        return self._commit.undo_key(effect)

    def expected_versions(self, effect: StepEffect) -> Mapping[str, int] | None:
        return self._commit.expected_versions(effect)


class JudgingAgain(Judging):
    """Asks a judgment again with the monitor's rejection, if there is one."""

    rejected: Rejected | None = None

    async def _propose_output(self, subtask: Subtask, repair: Rejected | None, documents: Mapping[str, Any]) -> Proposal:
        repair, self.rejected = repair or self.rejected, None
        return await super()._propose_output(subtask, repair, documents)


class MonitoredRunner(ProcedureRunner):
    """Works through the procedure without a gate, with a monitor after each step."""

    def __init__(self, task: Task, workbench: Workbench, form: Form):
        super().__init__(task, workbench, form, keeps="steps")
        self._task, self._workbench, self._gate = task, workbench, "open"
        self._asks = form.approval != "never" and (form.approval is not None or form.remedies or form.holds("policy"))
        verifier, signal, commit = self._boundary.verifier, self._boundary.signal, self._boundary.commit
        self._passed = DeferredVerifier(workbench, form, verifier)
        self._watched = WatchedCommit(form, commit, self._world)
        self._boundary = Boundary(self._passed, signal, self._watched)
        self._calling = ToolCaller(self._world, form, self.memory, self._watched)
        self._judging: JudgingAgain = JudgingAgain(task, workbench, form, self.memory, self._calling, self._boundary)

    async def attempt(self, step: ProcedureStep) -> str:
        """Act, then verify. Rejected effects are undone, and the judgment is asked again until nothing is rejected."""
        self._passed.step = step.name
        while True:
            why = await super().attempt(step)
            proposal = self._passed.proposal_acted_on(self._task.subtask(step.judgment)) if step.judgment else None
            rejected = self._rejection(step, proposal) if proposal else None
            against = "rejected" if rejected else self._denial(step) or await self._refusal(step)
            if not against:
                return why
            await undo_effects([step.name], self._calling, self.memory, self._world)
            if standing := [effect.effect for effect in self._effects(step)]:
                leave_for_a_person(self._world, step.name, "not repaired", standing)
                return ""
            heard = self._boundary.signal.for_proposer(rejected) if rejected else None
            if heard is None:
                return self._boundary.signal.reported_reason(against)
            self._judging.rejected = heard
            self._passed.forget()
            self.memory.update(step.name, judged=False, decided=None)
            if self._form.pins:
                self._world.store.put(PINNED + step.name, None)

    def _effects(self, step: ProcedureStep) -> list[StepEffect]:
        return [effect for effect in self.memory.effects(step.name) if effect.state in STANDING]

    def _rejection(self, step: ProcedureStep, proposal: Proposal) -> Rejected | None:
        """Return the rejection of the proposal behind a step: by its schema, by the pack's checks, or by the policy on its
        effects."""
        if (rejected := self._passed.verdict(proposal)) or not (why := self._denial(step)):
            return rejected
        self._workbench.reject(proposal, why)
        return Rejected(step.judgment, "check", why, proposal.text)

    def _denial(self, step: ProcedureStep) -> str:
        """Return why the policy denied an effect of a step when the effect was made; "" if it denied none."""
        if not self._form.holds("policy") and self._form.approval is None:
            return ""
        verdicts = (self._watched.verdicts.get(effect.number, PolicyVerdict()) for effect in self._effects(step))
        denied = (each for each in verdicts if each.decision == "deny" and each.rule != KILL_SWITCH)
        return next((each.why or each.rule or "denied" for each in denied), "")

    async def _refusal(self, step: ProcedureStep) -> str:
        """Ask a person about each effect of a step that needed approval. Return `denied` or `late` if one is not approved; ""
        if all are."""
        for effect in self._effects(step) if self._asks else ():
            verdict = self._watched.verdicts.get(effect.number, PolicyVerdict())
            if verdict.decision != "person" and self._form.approval != "always":
                continue
            keeps, asked = self._form.remedies, self._question(step, Call(effect.tool, effect.arguments))
            key = f"ask {asked.person}: {asked.about}" if keeps else None
            decision = await self._world.ask_person(asked.person, asked.about, asked.question, key, days=DAYS, of_people=keeps)
            if decision.answer == "denied" or (decision.answer == "late" and keeps):
                return decision.answer
        return ""
