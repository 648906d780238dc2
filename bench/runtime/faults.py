"""Faults: which are due, by a draw that no architecture can influence, and a receipt for each of them.

**Same schedule.** A draw depends on (seed, scenario, instance, repetition, subtask, attempt, sample, fault) and on nothing
else: not on the architecture, not on call order, not on concurrency. In a world point, tool, business key and try stand in the
place of subtask, attempt and sample. A call that does several subtasks' work is exposed to each one's faults.
One text carries one fault: where the draws make several due for the same part, input or output, the plan's first strikes, and
the others are not planned, since two on one text would overwrite each other. A call may fail more than once.

**Receipts.** A fault is *planned* when the call or commit that it belongs to is about to be made; then *delivered*, or *not
applicable* where nothing could carry it; then perhaps *detected*; and at the trial's end *recovered*, *gave_up* or
*undetected*.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from bench.runtime.effects import EFFECTS, Effect, Point
from bench.runtime.events import Faulted, Stage
from bench.runtime.key import TrialKey
from bench.seeding import draw_for

EVERY = "*"


@dataclass(frozen=True)
class Strike:
    """Where a fault strikes: an attempt at a subtask and its sample; in a world a tool or a kind of event, the try, and the
    business key or the event."""

    target: str
    attempt: int
    key: str = ""
    sample: int = 1


@dataclass(frozen=True)
class Fault:
    """An effect at a point, under a trigger: on chosen attempts, on `every` one, or else with a probability at every attempt.

    `subtask` names one, or `*` for each; in a world it names a tool, or a kind of event, and the attempts are the tries of one
    effect. `seconds` is how long a `slow` call or a `timeout` takes, and what a `rate_limit` says in Retry-After; `minutes` are
    those of a world's time. Of what the trigger draws `only` these strikes are made, where it is given; no draw changes by it.
    """

    point: Point
    effect: str
    subtask: str = EVERY
    attempts: tuple[int, ...] | Literal["every"] = ()
    probability: float = 0.0
    seconds: float = 1.0
    minutes: int = 0
    only: tuple[Strike, ...] | None = None

    @property
    def is_persistent(self) -> bool:
        """Then it does not wear off: at `call` it strikes every request, where any other strikes one of an attempt's."""
        return self.attempts == "every"

    def chooses(self, attempt: int) -> bool:
        """Whether its trigger names this attempt."""
        return isinstance(self.attempts, str) or attempt in self.attempts

    def may_make(self, strike: Strike) -> bool:
        """Return whether nothing forbids this strike, should the trigger draw it."""
        return self.only is None or strike in self.only


@dataclass(frozen=True)
class FaultPlan:
    """A named set of faults; the plan without any is the control."""

    name: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Due:
    """A fault that the draw has decided on, before it is known whether its call will be made. `number` is its place in the
    plan, from 0."""

    fault: Fault
    number: int
    subtask: str
    attempt: int
    draw: Random
    sample: int = 1
    key: str = ""

    @property
    def strike(self) -> Strike:
        return Strike(self.subtask, self.attempt, self.key, self.sample)


@dataclass
class OpenReceipt:
    """One planned fault on its way. `call` is the call that carries it."""

    number: int
    due: Due
    call: int | None
    emit: Callable[[Faulted], object]
    stages: list[Stage] = field(default_factory=list)

    def enter(self, stage: Stage, detail: str = "") -> None:
        self.stages.append(stage)
        fault, due = self.due.fault, self.due
        self.emit(Faulted(self.number, fault.point, fault.effect, due.subtask, due.attempt, stage, self.call, detail))

    @property
    def is_delivered(self) -> bool:
        return "delivered" in self.stages

    def detect(self) -> None:
        """What carried this fault was rejected, or its call failed; said once."""
        if self.is_delivered and "detected" not in self.stages:
            self.enter("detected")


class FaultSchedule:
    """The faults of one trial: tells what is due, and keeps every receipt."""

    def __init__(self, plan: FaultPlan, key: TrialKey, emit: Callable[[Faulted], object]):
        self._plan, self._key, self._emit = plan, key, emit
        self._points = {fault.point for fault in plan.faults}
        self.receipts: list[OpenReceipt] = []

    def due(self, point: Point, subtasks: Iterable[str], attempt: int, sample: int = 1) -> list[Due]:
        """The faults due at `point` for this attempt at these subtasks, by subtask and then in the plan's order.

        A text carries one fault: where several are drawn for a subtask's content, the plan's first is due.
        """
        if point not in self._points:
            return []
        drawn = [due for subtask in subtasks for due in self._drawn(point, subtask, attempt, sample)]
        if point == "call":
            return drawn
        first: dict[str, Due] = {}
        for due in drawn:
            first.setdefault(due.subtask, due)
        return list(first.values())

    def _drawn(self, point: Point, subtask: str, attempt: int, sample: int) -> Iterator[Due]:
        sampled = ("sample", sample) if sample > 1 else ()
        for number, fault in enumerate(self._plan.faults):
            if fault.point == point and fault.subtask in (EVERY, subtask):
                draw = draw_for(*self._key.drawn_from, subtask, attempt, *sampled, number, fault.effect)
                chosen = sample == 1 and fault.chooses(attempt)
                if chosen or draw.random() < fault.probability:
                    due = Due(fault, number, subtask, attempt, draw, sample)
                    if fault.may_make(due.strike):
                        yield due

    def due_in_world(
        self, points: Container[Point], target: str, key: str, try_: int, fits: Callable[[Fault], bool]
    ) -> Due | None:
        """The fault due for this try of one effect, or at one event: the plan's first of those that are drawn. Its draw depends
        on (seed, scenario, repetition, tool or kind of event, business key or event, try, fault) and on nothing else."""
        for number, fault in enumerate(self._plan.faults):
            if fault.point in points and fault.subtask in (EVERY, target) and fits(fault):
                draw = draw_for(*self._key.drawn_from, fault.point, target, key, try_, number, fault.effect)
                if fault.chooses(try_) or draw.random() < fault.probability:
                    due = Due(fault, number, target, try_, draw, key=key)
                    if fault.may_make(due.strike):
                        return due
        return None

    @property
    def effects(self) -> Iterator[Effect]:
        """The effects that can be due in this trial."""
        return (EFFECTS[fault.effect, fault.point] for fault in self._plan.faults)

    def plan(self, due: Due, call: int | None) -> OpenReceipt:
        """Open the receipt of a fault whose call or commit is now being made."""
        receipt = OpenReceipt(len(self.receipts) + 1, due, call, self._emit)
        self.receipts.append(receipt)
        receipt.enter("planned")
        return receipt

    def close(self, answered: bool, in_answer: Callable[[OpenReceipt], bool]) -> None:
        """Say of each delivered fault how it ended. `in_answer` tells whether what carried it is in the final answer."""
        for receipt in self.receipts:
            if not receipt.is_delivered:
                continue
            if not answered:
                receipt.enter("gave_up")
            elif "detected" not in receipt.stages and in_answer(receipt):
                receipt.enter("undetected")
            else:
                receipt.enter("recovered")
