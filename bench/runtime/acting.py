"""What an agent does to its world, call by call: the faults that are due strike it, and each step leaves an event."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from bench.environment import Acted, Arrival, Moment, Scheduled, Verdict, World
from bench.environment.database import dump
from bench.environment.schedule import Told, at_once
from bench.errors import GaveUp
from bench.runtime.clock import TrialClock, in_seconds
from bench.runtime.faults import Due, FaultSchedule, Receipt
from bench.runtime.log import TrialLog
from bench.runtime.process import Process, Store
from bench.runtime.world_effects import WORLD_EFFECTS, Strike
from bench.runtime.world_events import Arrived, PersonAsked, ProcessDied, Stored, ToolCalled, WorldBegan, WorldEnded

Arguments = BaseModel | Mapping[str, Any]
MOST_STEPS = 10_000
"""Calls, waits and questions of one trial. An agent that goes on and on would never end."""
BREATH = 100
"""Steps after which others on the event loop have their turn: without one, no time limit could end a loop of calls."""


class Acting:
    """The hands of one trial's agent, over all its lives."""

    def __init__(self, world: World, schedule: FaultSchedule, clock: TrialClock, log: TrialLog):
        self.world, self._schedule, self._clock, self._log = world, schedule, clock, log
        self.process = Process(self._died)
        self.store = Store(self.process, self._stored)
        self.last_crash = 0
        self._tries: Counter[tuple[str, str]] = Counter()
        self._steps = 0
        world.told_by(self._tell)
        policy = world.environment.policy
        log.emit(WorldBegan(world.digest(), *world.now, policy.version if policy else ""))

    async def act(self, tool: str, arguments: Arguments, key: str | None, expect: Mapping[str, int] | None) -> Acted:
        """Call a tool. Raises Crashed where the agent dies of it, GaveUp where it has called too often."""
        known = self.world.environment.by_name.get(tool)
        writes = bool(known and known.writes)
        await self._step(effect=writes)
        call = _Call(self.world, tool, arguments, key, expect, writes)
        self._tries[tool, call.effect] += 1
        due = self._due(call)
        if due is None:
            return self._told_of(call, call.first())
        receipt = self._schedule.plan(due, None)
        strike = WORLD_EFFECTS[due.fault.effect].strike
        return self._struck(call, receipt, strike) if strike else self._dying(call, receipt)

    def _due(self, call: _Call) -> Due | None:
        """The fault that this try of the call's effect carries."""
        if not call.effect:
            return None
        on = ("any", "write" if call.writes else "read")
        try_ = self._tries[call.tool, call.effect]
        return self._schedule.due_in_world(
            ("tool", "process"), call.tool, call.effect, try_, lambda fault: WORLD_EFFECTS[fault.effect].on in on
        )

    def _struck(self, call: _Call, receipt: Receipt, strike: Strike) -> Acted:
        """A call that carries a fault of its tool."""
        told = strike(call, receipt.due.fault.minutes)
        if told is None:
            receipt.enter("not_applicable", f"{call.tool} could not carry it")
            return self._told_of(call, call.first())
        receipt.enter("delivered", call.effect)
        if told.outcome == "failed":
            receipt.detect()
        return self._told_of(call, told)

    def _dying(self, call: _Call, receipt: Receipt) -> Acted:
        """A call at which the agent dies, now or soon. Raises Crashed."""
        point = receipt.due.fault.effect
        if point == "before":
            self.process.die(receipt)
        acted = call.first()
        if not acted.ok:
            receipt.enter("not_applicable", f"{call.tool} was {acted.outcome}")
            return self._told_of(call, acted)
        if point == "unacknowledged":
            self._emit_call(call, call.unanswered("the agent died"))
            self.process.die(receipt)
        self.process.arm("recorded" if point == "recorded" else "unrecorded", receipt)
        return self._told_of(call, acted)

    async def wait(self, until: Moment) -> tuple[Arrival, ...]:
        await self._step()
        return self._arrived(self.world.wait_until(until))

    async def next_event(self, after: int, until: Moment | None) -> Arrival | None:
        await self._step()
        found = self.world.next_event(after, until)
        return self._arrived((found,))[0] if found else None

    async def ask(self, kind: str, about: str, question: Mapping[str, Any], key: str | None) -> str:
        """Ask a person; the ticket. Raises KeyError where there is no such person."""
        await self._step(effect=True)
        ticket = self.world.ask(kind, about, question, key)
        self._log.emit(PersonAsked(kind, about, ticket, self.world.life, *self.world.now))
        return ticket

    def verdict(self, tool: str, arguments: Arguments) -> Verdict:
        return self.world.verdict(tool, arguments)

    def end(self) -> None:
        """The agent is done: what it was told it knows. The world goes on to its last moment, and is kept."""
        self.world.record()
        self.world.told_by(at_once)  # nobody is left whom a fault of a notice could mislead
        self.world.end()
        journal, tables = self.world.damage()
        kept = self._log.store_text(self.world.dump())
        damage, recount = asdict(journal), asdict(tables)
        self._log.emit(WorldEnded(self.world.digest(), kept, *self.world.now, self.world.life, damage, recount))

    async def _step(self, effect: bool = False) -> None:
        self.process.step(effect)
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise GaveUp(("the world",), f"no end after {MOST_STEPS:,} calls, waits and questions")
        if self._steps % BREATH == 0:
            await asyncio.sleep(0)

    def _told_of(self, call: _Call, acted: Acted) -> Acted:
        self.world.acknowledge(acted.entry)
        self._emit_call(call, acted)
        return acted

    def _emit_call(self, call: _Call, acted: Acted) -> None:
        known = self.world.environment.by_name.get(call.tool)
        entry = self.world.entry(acted.entry)
        given = call.arguments.model_dump(mode="json") if isinstance(call.arguments, BaseModel) else dict(call.arguments)
        result = acted.result.model_dump(mode="json") if acted.result is not None else None
        self._log.emit(
            ToolCalled(
                tool=call.tool,
                access=known.kind if known else "",
                effect=acted.effect,
                try_=max(1, self._tries[call.tool, acted.effect]),
                key=call.key,
                entry=acted.entry,
                arguments=self._log.store_text(dump(given)),
                result=None if result is None else self._log.store_text(dump(result)),
                outcome=acted.outcome,
                reason=acted.reason,
                decision=entry.decision if entry else "",
                rule=entry.rule if entry else "",
                policy=entry.policy if entry else "",
                life=self.world.life,
                day=self.world.now.day,
                minute=self.world.now.minute,
                started=in_seconds(self._clock.now()),
                before=call.before,
                after=self.world.digest(),
                code=acted.code,
            )
        )

    def _arrived(self, arrivals: Sequence[Arrival]) -> tuple[Arrival, ...]:
        for one in arrivals:
            payload = self._log.store_text(dump(dict(one.payload)))
            self._log.emit(Arrived(one.number, one.name, one.kind, payload, self.world.life, *one.at))
        return tuple(arrivals)

    def _tell(self, event: Scheduled, following: Moment | None) -> Sequence[Told]:
        """When the agent hears of an event, by the fault that is due."""
        due = self._schedule.due_in_world(("event",), event.kind, event.name, 1, lambda _: True)
        if due is None:
            return (Told(event.at),)
        receipt = self._schedule.plan(due, None)
        tell = WORLD_EFFECTS[due.fault.effect].tell
        told = tell(event.at, following, due.fault.minutes) if tell else None
        if told is None:
            receipt.enter("not_applicable", f"nothing comes after {event.name}")
            return (Told(event.at),)
        receipt.enter("delivered", event.name)
        return told

    def _stored(self, name: str, text: str) -> None:
        self.world.record()
        self._log.emit(Stored(name, self._log.store_text(text), self.world.life))

    def _died(self, point: str) -> None:
        self.last_crash = self._log.emit(ProcessDied(point, self.world.life, *self.world.now))
        self.world.died(point)


class _Call:
    """One call as an effect has it in hand (`bench.runtime.world_effects.ToolCall`)."""

    def __init__(
        self, world: World, tool: str, arguments: Arguments, key: str | None, expect: Mapping[str, int] | None, writes: bool
    ):
        self.tool, self.arguments, self.key, self.writes = tool, arguments, key, writes
        self.effect, self.before = world.effect_of(tool, arguments), world.digest()
        self._world, self._expect = world, expect
        self._first: Acted | None = None

    def first(self) -> Acted:
        if self._first is None:
            self._first = self._make()
        return self._first

    def again(self) -> Acted:
        return self._make()

    def past(self) -> Acted | None:
        return self._world.past(self.tool, self.arguments)

    def unanswered(self, reason: str) -> Acted:
        return Acted(self.tool, self.effect, "failed", reason=reason, code="unanswered")

    def pass_time(self, minutes: int) -> None:
        self._world.wait(minutes=minutes)

    def _make(self) -> Acted:
        return self._world.call(self.tool, self.arguments, self.key, expect=self._expect)
