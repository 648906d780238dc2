"""The course of an agent that follows the procedure step by step, never crashes, and judges as `judge` says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.scenario import Json, Subtask
from bench.worlds.run.environment import Call, Facts, ProcedureStep, World

Judge = Callable[[str, Mapping[str, str]], Json]
"""(subtask, its documents) -> its output."""


class Course:
    def __init__(self, steps: Sequence[ProcedureStep], subtasks: Sequence[Subtask], judge: Judge, gate: bool = True):
        self._steps, self._judge, self._gate = steps, judge, gate
        self._reads = {subtask.name: subtask.reads for subtask in subtasks}

    def __call__(self, world: World) -> None:
        """Follow the procedure. If no step can begin, wait for a notice or for a moment."""
        facts, settled, last = Facts(), set[str](), 0
        while True:
            step = next((one for one in self._steps if one.name not in settled and _may(one, facts, settled, world)), None)
            if step:
                settled.add(step.name)
                facts = self._do(step, facts, world) if step.needed(facts) else facts
                continue
            moments = [one.starts for one in self._steps if one.starts and one.starts > world.now and one.name not in settled]
            arrival = world.next_event(last, min(moments) if moments else None)
            if arrival:
                last = arrival.number
                facts = replace(facts, events={arrival.kind: arrival.payload, **facts.events})
            elif not moments:
                return

    def _do(self, step: ProcedureStep, facts: Facts, world: World) -> Facts:
        read = {name: _json(world.call(call.tool, call.arguments).result) for name, call in step.reads(facts).items()}
        facts = replace(facts, read={**facts.read, **read})
        if step.judgment:
            shown = {name: json.dumps(facts.read[name]) for name in self._reads[step.judgment] if name in facts.read}
            facts = replace(facts, decided={**facts.decided, step.name: self._judge(step.judgment, shown)})
        for call in step.effects(facts):
            facts = self._act(step, call, facts, world)
        return facts

    def _act(self, step: ProcedureStep, call: Call, facts: Facts, world: World) -> Facts:
        """Make a call, after a person's approval if the policy requires it; if the approval is denied, make the alternative
        call."""
        calls: Sequence[Call] = (call,)
        if self._gate and world.verdict(call.tool, call.arguments).decision == "person" and step.asks:
            asked = step.asks(facts, call)
            calls = (
                calls
                if _approved(world, world.ask(asked.person, asked.about, asked.question))
                else step.otherwise(facts, "denied")
            )
        for one in calls:
            acted = world.call(one.tool, one.arguments, f"{one.tool} {step.name}")
            if acted.ok:
                facts = replace(facts, results={**facts.results, acted.effect: _json(acted.result)})
        return facts


def _may(step: ProcedureStep, facts: Facts, settled: set[str], world: World) -> bool:
    begun = not step.on or step.on in facts.events
    return begun and settled.issuperset(step.after) and (step.starts is None or world.now >= step.starts)


def _approved(world: World, ticket: str) -> bool:
    last, until = 0, world.now.after(days=5)
    while arrival := world.next_event(last, until):
        last = arrival.number
        if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
            return bool(arrival.payload["approved"])
    return False


def _json(result: Any) -> Json:
    return result.model_dump(mode="json") if result is not None else None
