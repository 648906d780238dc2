"""What somebody does who follows the procedure step by step, never dies, and judges as `judge` says."""

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
    """`gate`: the policy is asked before each effect, and the lead where it wants a person; without it all is done at once."""

    def __init__(self, steps: Sequence[ProcedureStep], subtasks: Sequence[Subtask], judge: Judge, gate: bool = True):
        self._steps, self._judge, self._gate = steps, judge, gate
        self._reads = {subtask.name: subtask.reads for subtask in subtasks}

    def __call__(self, world: World) -> None:
        """Go through the procedure. Where no step can begin, wait for a notice or for a moment."""
        facts, settled = Facts(), set[str]()
        while True:
            arrivals = world.arrivals()
            facts = replace(facts, events={arrival.kind: arrival.payload for arrival in reversed(arrivals)})
            waiting = [step for step in self._steps if step.name not in settled]
            ready = [step for step in waiting if self._may_begin(step, facts, settled, world)]
            if ready:
                settled.add(ready[0].name)
                facts = self._do(ready[0], facts, world)
                continue
            moments = [step.starts for step in waiting if step.starts and step.starts > world.now]
            if world.next_event(len(arrivals), min(moments, default=None)) is None and not moments:
                return

    @staticmethod
    def _may_begin(step: ProcedureStep, facts: Facts, settled: set[str], world: World) -> bool:
        has_come = not step.on or step.on in facts.events
        return has_come and settled.issuperset(step.after) and (step.starts is None or world.now >= step.starts)

    def _do(self, step: ProcedureStep, facts: Facts, world: World) -> Facts:
        read = {name: _json(world.call(call.tool, call.arguments).result) for name, call in step.reads(facts).items()}
        facts = replace(facts, read={**facts.read, **read})
        if step.judgment:
            shown = {name: json.dumps(facts.read[name]) for name in self._reads[step.judgment] if name in facts.read}
            facts = replace(facts, decided={**facts.decided, step.name: self._judge(step.judgment, shown)})
        for call in step.effects(facts):
            if self._gate and not self._passes(step, call, facts, world):
                for other in step.otherwise(facts, "denied"):
                    facts = _act(other, facts, world)
                break
            facts = _act(call, facts, world)
        return facts

    @staticmethod
    def _passes(step: ProcedureStep, call: Call, facts: Facts, world: World) -> bool:
        """Whether the policy lets a call pass; the lead is asked first where it wants a person."""
        if world.verdict(call.tool, call.arguments).decision == "person" and step.asks:
            asked = step.asks(facts, call)
            ticket, last = world.ask(asked.person, asked.about, asked.question), 0
            while arrival := world.next_event(last, world.now.after(days=1)):
                last = arrival.number
                if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
                    break
        return world.verdict(call.tool, call.arguments).allows


def _act(call: Call, facts: Facts, world: World) -> Facts:
    acted = world.call(call.tool, call.arguments)
    return replace(facts, results={**facts.results, acted.effect: _json(acted.result)}) if acted.ok else facts


def _json(result: Any) -> Json:
    return result.model_dump(mode="json") if result is not None else {}
