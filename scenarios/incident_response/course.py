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
    """`gate`: the policy is asked before each effect, and a person where it wants one; without it all is done at once.
    `anew`: the kind of event upon each of which, the first apart, it forgets all and begins anew; "" for none."""

    def __init__(
        self, steps: Sequence[ProcedureStep], subtasks: Sequence[Subtask], judge: Judge, gate: bool = True, anew: str = ""
    ):
        self._steps, self._judge, self._gate, self._anew = steps, judge, gate, anew
        self._reads = {subtask.name: subtask.reads for subtask in subtasks}

    def __call__(self, world: World) -> None:
        """Whenever nothing can be done, wait for a notice or for a moment."""
        facts, settled, begun = Facts(), set[str](), 1
        while True:
            facts, last = _told(facts, world), len(world.arrivals())
            step = next((one for one in self._steps if one.name not in settled and _may(one, facts, settled, world)), None)
            if step:
                settled.add(step.name)
                facts = self._do(step, facts, world) if step.needed(facts) else facts
                continue
            if sum(one.kind == self._anew for one in world.arrivals()) > begun:
                facts, settled, begun = Facts(), set(), begun + 1
                continue
            moments = [one.starts for one in self._steps if one.starts and one.starts > world.now and one.name not in settled]
            if world.next_event(last, min(moments) if moments else None) is None and not moments:
                return

    def _do(self, step: ProcedureStep, facts: Facts, world: World) -> Facts:
        read = {name: _json(world.call(call.tool, call.arguments).result) for name, call in step.reads(facts).items()}
        facts = _told(replace(facts, read={**facts.read, **read}), world)
        if step.judgment:
            shown = {name: json.dumps(facts.read[name]) for name in self._reads[step.judgment] if name in facts.read}
            facts = replace(facts, decided={**facts.decided, step.name: self._judge(step.judgment, shown)})
        for call in step.effects(facts):
            if not self._gate or _passes(step, call, facts, world):
                facts = _act(call, facts, world)
                continue
            for other in step.otherwise(facts, "denied"):
                if world.verdict(other.tool, other.arguments).allows:
                    facts = _act(other, facts, world)
            break
        return facts


def _told(facts: Facts, world: World) -> Facts:
    events: dict[str, Any] = {}
    for arrival in world.arrivals():
        events.setdefault(arrival.kind, arrival.payload)
    return replace(facts, events=events)


def _may(step: ProcedureStep, facts: Facts, settled: set[str], world: World) -> bool:
    begun = not step.on or step.on in facts.events
    return begun and settled.issuperset(step.after) and (step.starts is None or world.now >= step.starts)


def _passes(step: ProcedureStep, call: Call, facts: Facts, world: World) -> bool:
    """Whether the policy lets a call pass; where it wants a person, one is asked first."""
    if world.verdict(call.tool, call.arguments).decision == "person" and step.asks:
        asked = step.asks(facts, call)
        _wait_for(world, world.ask(asked.person, asked.about, asked.question))
    return world.verdict(call.tool, call.arguments).allows


def _wait_for(world: World, ticket: str) -> None:
    last, until = 0, world.now.after(days=1)
    while arrival := world.next_event(last, until):
        last = arrival.number
        if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
            return


def _act(call: Call, facts: Facts, world: World) -> Facts:
    acted = world.call(call.tool, call.arguments)
    return replace(facts, results={**facts.results, acted.effect: _json(acted.result)}) if acted.ok else facts


def _json(result: Any) -> Json:
    return result.model_dump(mode="json") if result is not None else None
