"""The right course of a procedure: the calls of an agent that follows it step by step and knows the policy. A simulated model
makes these calls, one after another, in the world that its conversation shows.

Steps of a saga stand or fall together: if one fails, their effects are taken back in reverse order.

The course looks for notices whenever time has passed, as an agent in this process does by `workbench.world.arrivals`. It knows
nothing of restarts: if its system loses the conversation, the knowledge is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.scenario import Json, Task, as_document
from bench.worlds.run.environment import KILL_SWITCH, Arrival, Call, Environment, Facts, Moment, ProcedureStep, Question
from bench.worlds.run.environment.procedure import AsFarAsKnown, NotKnown
from bench.worlds.run.simulated.world import RememberedWorld

Judge = Callable[[str, Mapping[str, str]], Json | str]
"""(subtask, documents that show the state of the world) -> the output, or a text that is no output."""


@dataclass(frozen=True)
class _EffectDone:
    """An effect that the course has made and not undone."""

    step: str
    call: Call
    effect: str
    result: Any


@dataclass
class ProcedureCourse:
    """A course in progress. Without `knows_policy` it acts on its judgments even if the policy denies it. It always asks a
    person if the policy wants one, and never acts after the kill switch."""

    task: Task
    environment: Environment
    world: RememberedWorld
    judge: Judge
    knows_policy: bool = True
    _facts: Facts = field(default_factory=lambda: Facts(AsFarAsKnown(), AsFarAsKnown()))
    _settled: set[str] = field(default_factory=set)
    _failed_sagas: set[str] = field(default_factory=set)
    _effects_standing: list[_EffectDone] = field(default_factory=list)
    _has_failed: bool = False
    _last_notice: int = 0
    _notices_read_until: Moment = field(init=False)

    def follow(self) -> None:
        """Follow the course to its end. Raises NotYet at the first call that was not made."""
        self.world.learn_time()
        self._notices_read_until = self.world.now
        steps = self.environment.procedure
        while True:
            self._read_notices()
            if step := next((step for step in steps if self._may_begin(step)), None):
                self._settled.add(step.name)
                if why := self._attempt(step):
                    self._has_failed = True
                    self._give_up(step, why)
                continue
            starts = [each.starts for each in steps if each.starts and each.name not in self._settled]
            later = [moment for moment in starts if moment > self.world.now]
            if not self._wait(min(later, default=None)) and not later:
                return

    def _wait(self, until: Moment | None) -> Arrival | None:
        """Wait for the next event, or until this moment."""
        event = self.world.next_event(self._last_notice, until)
        if event is None or event.at >= self.world.now:
            self._notices_read_until = self.world.now
        return self._note_event(event)

    def _read_notices(self) -> None:
        """Read all notices that came while time passed."""
        while self._notices_read_until < self.world.now:
            if not self._note_event(self.world.next_event(self._last_notice, self.world.now)):
                self._notices_read_until = self.world.now

    def _note_event(self, event: Arrival | None) -> Arrival | None:
        """Add a notice to the facts, and return it."""
        if event:
            self._last_notice = event.number
            self._facts = replace(self._facts, events={event.kind: event.payload, **self._facts.events})
        return event

    def _may_begin(self, step: ProcedureStep) -> bool:
        """Return whether a step can begin now."""
        has_come = not step.on or step.on in self._facts.events
        in_time = step.starts is None or self.world.now >= step.starts
        return step.name not in self._settled and has_come and in_time and self._settled.issuperset(step.after)

    def _attempt(self, step: ProcedureStep) -> str:
        """Read, judge and act. Return why the step failed; "" if it did not. A step that needs a failed step's facts fails
        too."""
        try:
            return self._try_step(step)
        except NotKnown:
            if not self._has_failed:
                raise
            return "failed"

    def _try_step(self, step: ProcedureStep) -> str:
        """Do a step once. Return why it failed; "" if it is done, or not needed."""
        if step.saga and step.saga in self._failed_sagas:
            return "fallen"
        if not step.needed(self._facts):
            return ""
        if step.until is not None and self.world.now > step.until:
            return "late"
        if not self._read(step):
            return "failed"
        self._read_notices()
        if step.judgment:
            decided = self.judge(step.judgment, self._documents(step))
            if isinstance(decided, str):
                return "unreadable"
            self._facts = replace(self._facts, decided=AsFarAsKnown({**self._facts.decided, step.name: decided}))
        for call in step.effects(self._facts):
            if why := self._act(step, call):
                return why
        return ""

    def _read(self, step: ProcedureStep) -> bool:
        """Make the calls that a step reads with, and add their results to the facts. Return whether all calls succeeded."""
        calls = step.reads(self._facts)
        answers = dict(zip(calls, self.world.call_all(list(calls.values())), strict=True))
        read = {name: acted.result.model_dump(mode="json") for name, acted in answers.items() if acted.ok}
        self._facts = replace(self._facts, read=AsFarAsKnown({**self._facts.read, **read}))
        return len(read) == len(calls)

    def _documents(self, step: ProcedureStep) -> Mapping[str, str]:
        """Return the documents that a step's judgment sees beside the pack's documents."""
        facts = self._facts
        if step.documents:
            shown = step.documents(facts)
        else:
            shown = {name: facts.read[name] for name in self.task.subtask(step.judgment).reads if name in facts.read}
        return {name: as_document(value) for name, value in shown.items()}

    def _act(self, step: ProcedureStep, call: Call) -> str:
        """Make one effect of a step if the policy allows it. Return why it failed; "" if it did not."""
        if why := self._objection(step, call):
            return why
        acted = self.world.call(call.tool, call.arguments)
        if not acted.ok:
            return "failed"
        result = acted.result.model_dump(mode="json")
        undone = self.environment.undoes.get(call.tool), acted.effect
        self._effects_standing = [done for done in self._effects_standing if (done.call.tool, done.effect) != undone]
        results = {effect: known for effect, known in self._facts.results.items() if effect != acted.effect}
        if call.tool not in self.environment.undoes:
            self._effects_standing.append(_EffectDone(step.name, call, acted.effect, result))
            results[acted.effect] = result
        self._facts = replace(self._facts, results=results)
        return ""

    def _objection(self, step: ProcedureStep, call: Call) -> str:
        """Return why a call must not be made; "" if it may be made."""
        verdict = self.world.verdict(call.tool, call.arguments)
        if verdict.decision != "person":
            is_denied = verdict.decision == "deny" and (self.knows_policy or verdict.rule == KILL_SWITCH)
            return "denied" if is_denied else ""
        question = step.asks(self._facts, call) if step.asks else self._question(call)
        decision = self.world.decision(question.person, question.about, question.question)
        return "" if decision == "approved" else decision

    def _question(self, call: Call) -> Question:
        return Question(next(iter(self.environment.people)), self.world.effect_of(call), call.arguments)

    def _give_up(self, step: ProcedureStep, why: str) -> None:
        """Undo the effects of a failed step and of its saga, and make the step's `otherwise` calls."""
        peers = {other.name for other in self.environment.procedure if other is step or (step.saga and other.saga == step.saga)}
        self._failed_sagas |= {step.saga} - {""}
        for standing in reversed([done for done in self._effects_standing if done.step in peers]):
            self._undo(step, standing)
        for call in step.otherwise(self._facts, why):
            if all(done.call != call for done in self._effects_standing):  # two steps can fall back on the same call
                self._act(step, call)

    def _undo(self, step: ProcedureStep, done: _EffectDone) -> None:
        """Undo an effect, if its tool has an undo."""
        tool = self.environment.by_name[done.call.tool]
        if not tool.undo:
            return
        arguments = done.call.arguments
        if tool.undoing:
            arguments = tool.undoing(tool.arguments.model_validate(arguments), tool.result.model_validate(done.result))
        self._act(step, Call(tool.undo, arguments))


def tools_of(environment: Environment) -> Sequence[str]:
    """Return the names of the tools that a course can use: the world's tools, and those that every world offers."""
    return (*environment.by_name, "wait", "next_event", *(["ask_person"] if environment.people else []))
