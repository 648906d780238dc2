"""Work through a procedure's steps, as the form and the pattern say. The pattern decides which step is done when."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial

from bench.record.form import Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Call, Moment, ProcedureStep, Question
from bench.worlds.run.environment.procedure import NotKnown
from bench.worlds.run.patterns.boundary import Boundary
from bench.worlds.run.patterns.calling import ToolCaller
from bench.worlds.run.patterns.compensation import undo_effects, undo_or_note
from bench.worlds.run.patterns.gate import GateRule, gate_objection
from bench.worlds.run.patterns.judging import Judging
from bench.worlds.run.patterns.memory import Keeps, Memory, dependents
from bench.worlds.run.runtime.actions import WorldActions
from bench.worlds.run.runtime.effects import StepReport

MAX_READS = 5
"""The most times that a step is decided, if the world changes between its decision and its effects."""


class ProcedureRunner:
    """Runs the steps of a procedure. `keeps`, `gate` and `compensates` describe the pattern without remedies. With remedies
    every pattern remembers its work, has a gate that keeps asking, and undoes a failed step's effects in reverse order."""

    def __init__(
        self,
        task: Task,
        workbench: Workbench,
        form: Form,
        *,
        keeps: Keeps = "nothing",
        gate: GateRule = "open",
        compensates: bool = False,
    ):
        self._form = form
        self._world: WorldActions = workbench.world
        self._gate: GateRule = "asks" if gate == "open" and form.holds("policy") else gate
        if form.remedies:
            self._gate = "keeps_asking"
        if form.approval:
            asks: GateRule = "keeps_asking" if form.remedies else "asks"
            self._gate = {"never": "stamps", "risky": asks, "always": "asks_of_all"}[form.approval]
        self._compensates = form.remedies or compensates
        self.memory = Memory(self._world.store, "work" if form.remedies else keeps, self._world.undoes)
        self._boundary: Boundary = self._world.exchanged(Boundary.of(workbench, form))
        self._calling = ToolCaller(self._world, form, self.memory, self._boundary.commit)
        self._judging = Judging(task, workbench, form, self.memory, self._calling, self._boundary)
        self.steps = self._world.procedure
        self._last_notice = 0

    # The steps that can be done now.

    def ready(self) -> list[ProcedureStep]:
        """Return the steps that can begin now, in the procedure's order."""
        return [step for step in self._possible() if step.starts is None or step.starts <= self._world.now]

    def next_start(self) -> Moment | None:
        """Return when the next step can begin that waits only for a moment; None if no step does."""
        starts = [step.starts for step in self._possible() if step.starts is not None]
        return min((start for start in starts if start > self._world.now), default=None)

    def _possible(self) -> list[ProcedureStep]:
        """Return the steps that are not done and wait neither for another step nor for a notice."""
        is_done, arrived = self.memory.is_done, {arrival.kind for arrival in self._world.arrivals()}
        unblocked = [step for step in self.steps if not is_done(step.name) and all(map(is_done, step.after))]
        return [step for step in unblocked if not step.on or step.on in arrived]

    async def rounds(self) -> AsyncIterator[Sequence[ProcedureStep]]:
        """Yield the ready steps again and again, and wait for the world in between, until nothing more can come."""
        while not all(self.memory.is_done(step.name) for step in self.steps):
            await self.catch_up()
            if ready := self.ready():
                yield ready
            elif not await self.wait() and not await self.catch_up():
                return

    async def catch_up(self) -> bool:
        """Ask for notices that never came, if the form says so. Return whether there were any."""
        return self._form.catches_up and bool(await self._world.catch_up())

    async def wait(self, until: Moment | None = None) -> bool:
        """Wait for the next notice, for the next step's moment, or until `until`. Return False if none of these can come."""
        start = min((moment for moment in (self.next_start(), until) if moment is not None), default=None)
        event = await self._world.next_event(self._last_notice, start)
        self._last_notice = event.number if event else self._last_notice
        return event is not None or start is not None

    # One step.

    async def work(self, step: ProcedureStep) -> None:
        """Attempt a step, and record its end."""
        await self.settle(step, await self.attempt(step))

    async def attempt(self, step: ProcedureStep) -> str:
        """Read, judge and act. Return why the step failed; "" if it did not. A step that needs a failed step's facts fails
        too."""
        try:
            return await self._attempt(step)
        except NotKnown:
            return self._boundary.signal.reported_reason("failed")

    async def _attempt(self, step: ProcedureStep) -> str:
        """Decide and do a step. If what it read has changed meanwhile, read, decide and do it again, up to MAX_READS times in
        all. Return why it failed; "" if it is done, or not needed."""
        self._world.begin_step(step)
        if self._compensates and any(self.memory.step_memory(peer).why for peer in self._peers(step)):
            return "fallen"
        if not self._judging.ask_pack(step.needed, step):
            return ""
        if step.until is not None and self._world.now > step.until:
            return "late"
        if step.box and self.memory.step_memory(step.name).begun is None:
            self.memory.update(step.name, begun=self._world.now.total)
        for _ in range(MAX_READS):
            why = await self._decide_step(step) or await self._act_step(step)
            if why != "stale":
                return self._boundary.signal.reported_reason(why)
            self.memory.update(step.name, read={}, versions={})
        return "failed"

    async def settle(self, step: ProcedureStep, why: str) -> None:
        """Record that a step is done. If it failed, undo its saga's effects and make the pack's `otherwise` calls."""
        if why and self._compensates:
            self.memory.update(step.name, why=why)
            in_reverse = self._form.undo_order != "as_done"
            await undo_effects(self._peers(step), self._calling, self.memory, self._world, in_reverse=in_reverse)
        if why and self._form.remedies:
            with suppress(NotKnown):
                await self._make_otherwise_calls(step, why)
        self.memory.update(step.name, done=True, why=why)
        self._world.end_step(step, why)

    async def _make_otherwise_calls(self, step: ProcedureStep, why: str) -> None:
        """Make the calls that the pack declares for a step that failed, unless the gate objects."""
        for call in self._judging.ask_pack(step.otherwise, step, why):
            if not await gate_objection(self._gate, step, call, partial(self._question, step, call), self._world):
                await self._calling.effect(step, call)

    def _question(self, step: ProcedureStep, call: Call) -> Question:
        """Return the question to a person about a call."""
        if step.asks:
            return self._judging.ask_pack(step.asks, step, call)
        return Question(self._world.people[0], self._world.effect_of(call.tool, call.arguments), call.arguments)

    def _peers(self, step: ProcedureStep) -> list[str]:
        """Return the names of the steps in the same saga, this step included."""
        return [other.name for other in self.steps if other is step or (step.saga and other.saga == step.saga)]

    def has_unknown_effect(self, step: ProcedureStep) -> bool:
        """Return whether an effect that the step intended is not known to have happened."""
        return any(effect.state == "intended" for effect in self.memory.effects(step.name))

    def report(self, step: ProcedureStep, why: str) -> StepReport:
        """Send the worker's report on an attempt at a step, and return the report that its sender believes. Of two
        contradictory reports that is the last one without remedies, and with remedies the one that agrees with the recorded
        state of the step."""
        received = self._world.report(step, StepReport(why, self.has_unknown_effect(step)))
        return received.report_that_agrees(lambda: self._is_recorded(step)) if self._form.remedies else received.last

    def _is_recorded(self, step: ProcedureStep) -> bool:
        """Return whether the step's decision, and each of its effects as done, are recorded."""
        work = self.memory.step_memory(step.name)
        done = [(effect.tool, effect.arguments) for effect in self.memory.effects(step.name) if effect.state == "done"]
        try:
            if not self._judging.ask_pack(step.needed, step):
                return True
            if work.judged != bool(step.judgment) or (not work.read and self._judging.ask_pack(step.reads, step)):
                return False
            return all((call.tool, dict(call.arguments)) in done for call in self._judging.effects(step))
        except NotKnown:
            return False

    def reopen(self, step: str) -> None:
        """Forget this step and all steps after it, so that they are done again."""
        for name in dependents(self.steps, step):
            self.memory.forget(name)

    async def _decide_step(self, step: ProcedureStep) -> str:
        """Read what a step reads, and ask its judgment, unless memory has the results. Return why the read or the judgment
        failed; "" if neither did."""
        memory = self.memory.step_memory(step.name)
        is_remembered = memory.read and self._boundary.commit.remembers and memory.judged == bool(step.judgment)
        if not is_remembered and (why := await self._judging.read(step)):
            return why
        if step.judgment and not self.memory.step_memory(step.name).judged:
            return await self._judging.decide(step)
        return ""

    async def _act_step(self, step: ProcedureStep) -> str:
        """Make the effects of a step. Return why one failed; "" if none did."""
        calls = self._judging.effects(step)
        if self._compensates:
            await self._undo_unwanted(step, calls)
        for call in calls:
            if why := await self._effect(step, call):
                return why
        return ""

    def _is_over(self, step: ProcedureStep) -> bool:
        """Return whether the step has taken longer than its time box allows."""
        begun = self.memory.step_memory(step.name).begun
        return bool(step.box) and begun is not None and self._world.now.total > begun + step.box

    async def _effect(self, step: ProcedureStep, call: Call) -> str:
        """Make one effect of a step if the gate allows it. Return why it failed; "" if it did not."""
        recorded = self._calling.recorded_effect(step.name, call)
        if not (recorded and recorded.state == "done"):
            question = partial(self._question, step, call)
            if why := await gate_objection(self._gate, step, call, question, self._world, was_intended=recorded is not None):
                return why
        if recorded is None and self._is_over(step):
            return "late"
        acted = await self._calling.effect(step, call)
        if acted.ok:
            return ""
        return "stale" if acted.code == "stale" else "failed"

    async def _undo_unwanted(self, step: ProcedureStep, calls: Sequence[Call]) -> None:
        """Undo effects of an earlier decision of this step that the present decision does not want."""
        wanted = [(call.tool, dict(call.arguments)) for call in calls]
        for effect in reversed(self.memory.effects(step.name)):
            is_unwanted = effect.state in ("intended", "done") and (effect.tool, effect.arguments) not in wanted
            if is_unwanted and self._world.tools[effect.tool].undo:
                await undo_or_note(effect, self._calling, self._world)
