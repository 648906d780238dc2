"""The agent's actions in its world, call by call. Due faults strike here, and each action leaves an event."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import BaseModel

from bench.common.errors import GaveUp
from bench.record.events import Called
from bench.record.journal import dump
from bench.record.world_events import (
    AGENT,
    Arrived,
    PersonAsked,
    PersonDecided,
    ProcessDied,
    Stepped,
    Stored,
    ToolCalled,
    WorldBegan,
    WorldEnded,
)
from bench.run.models.base import Reply
from bench.run.trial.clock import TrialClock, in_seconds
from bench.run.trial.effects import EFFECTS, effect_at
from bench.run.trial.faults import DueFault, Fault, FaultSchedule, OpenReceipt
from bench.run.trial.log import TrialLog
from bench.worlds.run.environment import Acted, Arrival, Moment, PolicyVerdict, Scheduled, World
from bench.worlds.run.environment.calling import RefusalCode
from bench.worlds.run.environment.people import ANSWER, Manner
from bench.worlds.run.environment.procedure import judgments_behind
from bench.worlds.run.environment.schedule import NoticeTime, at_once
from bench.worlds.run.environment.world import ToolArguments
from bench.worlds.run.runtime.agent_session import AGENT as AGENT_ASKS
from bench.worlds.run.runtime.effects import (
    AnswerEffect,
    ClaimEffect,
    ClaimFate,
    NoticeEffect,
    ProcessEffect,
    ReportEffect,
    StepReport,
    ToolEffect,
)
from bench.worlds.run.runtime.process import DiesInMidReply, Process, Store

Try = tuple[str, str]
"""(tool, business key) of an effect that is tried. For a question to a person, the person takes the place of the tool."""
MAX_STEPS = 10_000
"""The most calls, waits and questions of one trial, so that no agent goes on for ever."""
YIELD_INTERVAL = 100
"""The number of calls, waits and questions after which other tasks of the event loop run. Otherwise no time limit could end a
loop of calls."""


CURRENT_STEP = ContextVar("step_in_hand", default="")
"""The procedure step of this task of the event loop. Steps that are done at the same time are separate tasks."""


@dataclass(frozen=True)
class ReceivedReports:
    """The reports that arrive from a worker: `first` is the worker's own. If a fault struck, `contrary` contradicts it."""

    first: StepReport
    contrary: StepReport | None = None
    receipt: OpenReceipt | None = None

    @property
    def last(self) -> StepReport:
        """The report that arrived last."""
        return self.contrary or self.first

    def report_that_agrees(self, is_done: Callable[[], bool]) -> StepReport:
        """Return the only report, or, of two reports that contradict each other, the report that agrees with `is_done()`, which
        says whether the step is done. The contradiction then counts as detected."""
        if self.receipt is None:
            return self.first
        self.receipt.detect()
        return self.last if self.last.is_done is is_done() else self.first


class Acting:
    """The actions of one trial's agent in its world, over all its processes. `calls` is the number of tool calls that left an
    event.

    If the agent's processes are real operating system processes, each of them gets its own `Acting`, with a `process`, a
    `store` and `tries` that outlive the process.
    """

    def __init__(
        self,
        world: World,
        schedule: FaultSchedule,
        clock: TrialClock,
        log: TrialLog,
        *,
        process: Callable[[Callable[[str], object]], Process] = Process,
        store: Callable[[Process, Callable[[str, str], object]], Store] = Store,
        tries: Counter[Try] | None = None,
    ):
        self.world, self._schedule, self.clock, self.log = world, schedule, clock, log
        self.process = process(self._die)
        self.store = store(self.process, self._store_text)
        self.last_crash = 0
        self.calls = 0
        self._tries: Counter[Try] = Counter() if tries is None else tries
        self._steps = self._replies = self._last_entry_told = self._last_entry_recorded = 0
        self.plan_version = 0
        self._judgments_behind = {"": frozenset([AGENT_ASKS.name]), **judgments_behind(world.environment.procedure)}
        self._calls_by_judgment: dict[str, int] = {}
        self._events_read = 0
        CURRENT_STEP.set("")
        world.set_notice_times(self._notice_times)
        world.manners = self._manner_of
        environment = world.environment
        policy = environment.policy.version if environment.policy else ""
        log.emit(WorldBegan(world.digest(), *world.now, policy, environment.contracts))

    async def act(
        self,
        tool: str,
        arguments: ToolArguments,
        key: str | None,
        expect: Mapping[str, int] | None,
        role: str = AGENT,
        deadline: int | None = None,
    ) -> Acted:
        """Call a tool. Raises Crashed if the agent is killed at this call, and GaveUp if it has called too often."""
        declared = self.world.environment.by_name.get(tool)
        writes = bool(declared and declared.writes)
        await self._step(effect=writes)
        call = _ToolCallInProgress(self.world, tool, arguments, key, expect, role, writes, deadline)
        self._tries[tool, call.effect] += 1
        due = self._due(call)
        if due is None:
            return self._log_result(call, call.first())
        receipt = self._schedule.plan(due, None)
        effect = EFFECTS[due.fault.effect, due.fault.point]
        if isinstance(effect, ToolEffect):
            return self._strike_call(call, receipt, effect)
        assert isinstance(effect, ProcessEffect)
        return self._call_and_die(call, receipt, effect)

    def _due(self, call: _ToolCallInProgress) -> DueFault | None:
        """Return the fault that this try of the call's effect carries; None if no fault is due."""
        if not call.effect:
            return None
        accesses = ("any", "write" if call.writes else "read")
        try_ = self._tries[call.tool, call.effect]
        return self._schedule.due_in_world(
            ("tool", "process"), call.tool, call.effect, try_, lambda fault: EFFECTS[fault.effect, fault.point].on in accesses
        )

    def _strike_call(self, call: _ToolCallInProgress, receipt: OpenReceipt, effect: ToolEffect) -> Acted:
        """Make a call under a fault of the tool, and return the result that the agent is told."""
        answer = effect.strike(call, receipt.due.fault.minutes)
        if answer is None:
            receipt.enter("not_applicable", f"{call.tool} could not carry it")
            return self._log_result(call, call.first())
        receipt.enter("delivered", call.effect)
        if answer.outcome == "failed" or (answer.outcome == "refused" and not answer.entry):
            receipt.detect()  # the world's own refusal has an entry, and is not the fault's
        return self._log_result(call, answer)

    def _call_and_die(self, call: _ToolCallInProgress, receipt: OpenReceipt, effect: ProcessEffect) -> Acted:
        """Make a call at which the agent's process is killed: before the call, after it without its answer, or soon after its
        answer. If the call fails, nothing is killed. Raises Crashed if the process is killed now."""
        if self.process.body.asker:
            self._record_results()  # its other processes keep what they were told
        if effect.dies == "before":
            self.process.die(receipt)
        acted = call.first()
        if not acted.ok:
            receipt.enter("not_applicable", f"{call.tool} was {acted.outcome}")
            return self._log_result(call, acted)
        if effect.dies == "unacknowledged":
            self._emit_call(call, call.without_result("the agent died"))
            self.process.die(receipt)
        self.process.arm("recorded" if effect.dies == "recorded" else "unrecorded", receipt)
        return self._log_result(call, acted)

    async def wait(self, until: Moment) -> tuple[Arrival, ...]:
        """Let world time pass up to a moment, and return the notices that came meanwhile."""
        await self._step()
        return self._log_arrivals(self.world.wait_until(until))

    async def next_event(self, after: int, until: Moment | None) -> Arrival | None:
        """Wait for the first event whose number is above `after`, log it, and return it; None if none comes before `until`."""
        await self._step()
        arrival = self.world.next_event(after, until)
        return self._log_arrivals((arrival,))[0] if arrival else None

    async def catch_up(self) -> tuple[Arrival, ...]:
        """Return new notices for events that happened without a notice."""
        await self._step()
        return self._log_arrivals(self.world.catch_up())

    async def ask(self, kind: str, about: str, question: Mapping[str, Any], key: str | None, shown: str = "") -> str:
        """Ask a person and return the ticket. Raises KeyError if there is no such person, and Crashed if the agent is killed
        after asking."""
        await self._step(effect=True)
        ticket = self.world.ask(kind, about, question, key)
        self.log.emit(PersonAsked(kind, about, ticket, self.world.life, *self.world.now, shown=shown, **self._in_step()))
        self._tries[kind, about] += 1
        due = self._schedule.due_in_world(
            ("process",), kind, about, self._tries[kind, about], lambda fault: EFFECTS[fault.effect, fault.point].on == "ask"
        )
        if due is not None:
            self.process.die(self._schedule.plan(due, None))
        return ticket

    async def claim(self, step: str) -> ClaimFate:
        """Return what a due fault does to a worker who is about to claim a step; "" if no fault is due."""
        await self._step()
        self._tries["claim", step] += 1
        due = self._schedule.due_in_world(
            ("process",),
            step,
            "claim",
            self._tries["claim", step],
            lambda fault: isinstance(EFFECTS[fault.effect, fault.point], ClaimEffect),
        )
        if due is None:
            return ""
        self._schedule.plan(due, None).enter("delivered", step)
        return effect_at(due.fault.effect, "process", ClaimEffect).befalls

    def report(self, step: str, report: StepReport) -> ReceivedReports:
        """Return the reports that arrive when a worker sends this report: the report alone, or with a second report that a due
        fault adds."""
        self._tries["report", step] += 1
        due = self._schedule.due_in_world(
            ("process",),
            step,
            "report",
            self._tries["report", step],
            lambda fault: isinstance(EFFECTS[fault.effect, fault.point], ReportEffect),
        )
        if due is None:
            return ReceivedReports(report)
        receipt = self._schedule.plan(due, None)
        second = effect_at(due.fault.effect, "process", ReportEffect).strike(report)
        if second is None or second == report:
            receipt.enter("not_applicable", f"the report on {step} reads the same")
            return ReceivedReports(report)
        receipt.enter("delivered", f"{step}: {report}; then: {second}")
        return ReceivedReports(report, second, receipt)

    def _manner_of(self, ticket: str) -> Manner:
        """Return the manner in which a due fault lets a question be answered; "" if no fault is due."""
        due = self._schedule.due_in_world(
            ("event",), ANSWER, ticket, 1, lambda fault: EFFECTS[fault.effect, "event"].on == ANSWER
        )
        if due is None:
            return ""
        self._schedule.plan(due, None).enter("delivered", ticket)
        return effect_at(due.fault.effect, "event", AnswerEffect).manner

    def log_decision(self, kind: str, ticket: str, answer: str) -> None:
        """Log that the agent no longer waits for a person's answer."""
        self.log.emit(PersonDecided(kind, ticket, answer, self.world.life, *self.world.now, **self._in_step()))

    def log_step(self, step: str, stage: Literal["began", "ended"], why: str) -> None:
        """Log that a step of the procedure began or ended."""
        CURRENT_STEP.set(step)
        self.log.emit(Stepped(step, stage, why, self.world.life, *self.world.now, **self._origin()))
        if stage == "ended":
            CURRENT_STEP.set("")

    def verdict(self, tool: str, arguments: ToolArguments) -> PolicyVerdict:
        return self.world.verdict(tool, arguments)

    def end(self) -> None:
        """End the agent's work: record that the agent knows the results that it got. Let the world continue to its last moment,
        and log its end."""
        self.world.record()
        self.world.set_notice_times(at_once)  # no agent is left whom a faulty notice could mislead
        self.world.end()
        journal, tables = self.world.damage()
        kept = self.log.keep_text(self.world.dump())
        damage, recount = asdict(journal), asdict(tables)
        self.log.emit(WorldEnded(self.world.digest(), kept, *self.world.now, self.world.life, damage, recount))

    # For an operating system's process: its notes cannot be seen, but its requests can.

    def note_request(self) -> None:
        """Note that the agent sends a request of any kind: it had time to record the results that it got before. Raises Crashed
        if the agent is to be killed after recording them."""
        self.process.step()
        self._record_results()
        self.process.note_write()

    def note_exit(self) -> None:
        """Note that the agent has ended by itself, and knows the results that it got."""
        self._record_results()
        self.process.disarm("the process had ended by itself")

    def mid_reply(self, reply: Reply, call: int) -> DiesInMidReply | None:
        """Return the agent's death in the middle of this model reply; None if it does not die there. The random draw depends on
        the reply's number in this trial."""
        self._replies += 1
        number = self._replies
        due = self._schedule.due_in_world(
            ("process",), "model", f"reply {number}", number, lambda fault: not EFFECTS[fault.effect, fault.point].on
        )
        if due is None:
            return None
        return DiesInMidReply(self.process, self._schedule.plan(due, call), reply)

    def _record_results(self) -> None:
        """Note that the agent has recorded the results that it was told."""
        if self._last_entry_told > self._last_entry_recorded:
            self.world.record(self._last_entry_recorded)
            self._last_entry_recorded = self._last_entry_told

    async def _step(self, effect: bool = False) -> None:
        """Count a step. Raises Crashed if the agent is to die before the step, and GaveUp beyond the limit of steps."""
        self.process.step(effect)
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise GaveUp(("the world",), f"no end after {MAX_STEPS:,} calls, waits and questions")
        if self._steps % YIELD_INTERVAL == 0:
            await asyncio.sleep(0)

    def _log_result(self, call: _ToolCallInProgress, acted: Acted) -> Acted:
        """Log the result of a call for the agent, and return it."""
        self.world.acknowledge(acted.entry)
        self._last_entry_told = max(self._last_entry_told, acted.entry)
        self._emit_call(call, acted)
        return acted

    def _emit_call(self, call: _ToolCallInProgress, acted: Acted) -> None:
        """Log a tool call with its journal entry and the digests of the world before and after."""
        declared = self.world.environment.by_name.get(call.tool)
        entry = self.world.entry(acted.entry)
        given = call.arguments.model_dump(mode="json") if isinstance(call.arguments, BaseModel) else dict(call.arguments)
        result = acted.result.model_dump(mode="json") if acted.result is not None else None
        self.calls += 1
        self.log.emit(
            ToolCalled(
                tool=call.tool,
                access=declared.kind if declared else "",
                effect=acted.effect,
                try_=max(1, self._tries[call.tool, acted.effect]),
                key=call.key,
                entry=acted.entry,
                arguments=self.log.keep_text(dump(given)),
                result=None if result is None else self.log.keep_text(dump(result)),
                outcome=acted.outcome,
                reason=acted.reason,
                decision=entry.decision if entry else "",
                rule=entry.rule if entry else "",
                policy=entry.policy if entry else "",
                life=self.world.life,
                day=self.world.now.day,
                minute=self.world.now.minute,
                started=in_seconds(self.clock.now()),
                before=call.before,
                after=self.world.digest(),
                code=acted.code,
                role=call.role,
                **self._in_step(),
            )
        )

    def _in_step(self) -> dict[str, Any]:
        """Return the present step of the procedure and the origin, as fields of an event."""
        return {"step": CURRENT_STEP.get(), **self._origin()}

    def _origin(self) -> dict[str, Any]:
        """Return the request and the plan version that caused an event of the present step, as fields of the event."""
        for event in self.log.events[self._events_read :]:
            if isinstance(event, Called):
                self._calls_by_judgment.update(dict.fromkeys(event.subtasks, event.call))
        self._events_read = len(self.log.events)
        judgments = self._judgments_behind[CURRENT_STEP.get()]
        requests = [self._calls_by_judgment[judgment] for judgment in judgments if judgment in self._calls_by_judgment]
        return {"request": max(requests, default=None), "plan_version": self.plan_version}

    def _log_arrivals(self, arrivals: Sequence[Arrival]) -> tuple[Arrival, ...]:
        """Log notices, and return them."""
        for arrival in arrivals:
            payload = self.log.keep_text(dump(dict(arrival.payload)))
            self.log.emit(Arrived(arrival.number, arrival.name, arrival.kind, payload, self.world.life, *arrival.at))
        return tuple(arrivals)

    def _notice_times(self, event: Scheduled, following: Moment | None) -> Sequence[NoticeTime]:
        """Return the times at which the notices of an event arrive: one at the time of the event, or what a due fault makes of
        it. A fault that strikes every event does not strike people's answers."""

        def fits(fault: Fault) -> bool:
            """Return whether a fault can strike the notices of this event."""
            changes_notices = EFFECTS[fault.effect, "event"].on != ANSWER
            return changes_notices and (event.kind != ANSWER or fault.subtask == ANSWER)

        due = self._schedule.due_in_world(("event",), event.kind, event.name, 1, fits)
        if due is None:
            return (NoticeTime(event.at),)
        receipt = self._schedule.plan(due, None)
        effect = effect_at(due.fault.effect, due.fault.point, NoticeEffect)
        notices = effect.strike(event.at, following, due.fault.minutes)
        if notices is None:
            receipt.enter("not_applicable", f"nothing comes after {event.name}")
            return (NoticeTime(event.at),)
        receipt.enter("delivered", event.name)
        return notices

    def _store_text(self, name: str, text: str) -> None:
        """Log a write to the agent's store. The agent has then recorded the results that it was told."""
        self.world.record()
        self.log.emit(Stored(name, self.log.keep_text(text), self.world.life, **self._in_step()))

    def _die(self, point: str) -> None:
        """Log the death of the agent's process, and note it in the world."""
        self.last_crash = self.log.emit(ProcessDied(point, self.world.life, *self.world.now, **self._in_step()))
        CURRENT_STEP.set("")
        self.world.note_crash(point)


class _ToolCallInProgress:
    """One tool call, as a fault effect handles it (`bench.worlds.run.runtime.effects.StruckToolCall`)."""

    def __init__(
        self,
        world: World,
        tool: str,
        arguments: ToolArguments,
        key: str | None,
        expect: Mapping[str, int] | None,
        role: str,
        writes: bool,
        deadline: int | None,
    ):
        self.tool, self.arguments, self.key, self.writes = tool, arguments, key, writes
        self.effect, self.before = world.effect_of(tool, arguments), world.digest()
        self._world, self._expect, self.role = world, expect, role
        self._first: Acted | None = None
        self._deadline, self._is_given_up = deadline, False

    def first(self) -> Acted:
        if self._first is None:
            self._first = self.without_result("given up at its deadline") if self._is_given_up else self._make()
        return self._first

    def again(self) -> Acted:
        return self._make()

    def past(self) -> Acted | None:
        return self._world.past(self.tool, self.arguments)

    def without_result(self, reason: str, code: RefusalCode = "unanswered") -> Acted:
        return Acted(self.tool, self.effect, "failed", reason=reason, code=code)

    def refused_until(self, minutes: int) -> Acted:
        again = self._world.now.after(minutes=minutes)
        why = f"throttled: no call of {self.tool} is taken now; wait until {again}"
        return Acted(self.tool, self.effect, "refused", reason=why, code="throttled", again=again)

    def pass_time(self, minutes: int) -> None:
        self._is_given_up = self._deadline is not None and minutes > self._deadline
        self._world.elapse(min(minutes, self._deadline or minutes))

    def change_elsewhere(self) -> bool:
        things = self._world.things_of(self.tool, self.arguments)
        if things:
            self._world.change_elsewhere(things)
        return bool(things)

    def _make(self) -> Acted:
        return self._world.call(self.tool, self.arguments, self.key, expect=self._expect, who=self.role)
