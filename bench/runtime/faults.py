"""Faults: which are due, by a draw that no architecture can influence, and a receipt for each of them.

**Same schedule.** A draw depends on (seed, scenario, repetition, subtask, attempt, fault) and on nothing else: not on the
architecture, not on call order, not on concurrency. A call that does several subtasks' work is exposed to each one's faults.
One text carries one fault: where the draws make several due for the same part, input or output, the plan's first strikes, and
the others are not planned, since two on one text would overwrite each other. A call may fail more than once.

**Receipts.** A fault is *planned* when the call or commit that it belongs to is about to be made; then *delivered*, or *moot*
where the text could not carry it; then perhaps *seen* by the verifier; and at the trial's end *recovered*, *gave_up* or
*unnoticed*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from bench.runtime.effects import Point
from bench.runtime.events import Faulted, Stage
from bench.seeding import draw_for

EVERY = "*"


@dataclass(frozen=True)
class Fault:
    """An effect at a point, under a trigger: on chosen attempts, or else with a probability at every attempt.

    `subtask` names one, or `*` for each. `seconds` is how long a `slow` call or a `timeout` takes, and what a `rate_limit`
    says in Retry-After.
    """

    point: Point
    effect: str
    subtask: str = EVERY
    attempts: tuple[int, ...] = ()
    probability: float = 0.0
    seconds: float = 1.0


@dataclass(frozen=True)
class FaultPlan:
    """A named set of faults; the plan without any is the control."""

    name: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Due:
    """A fault that the draw has decided on, before it is known whether its call will be made."""

    fault: Fault
    subtask: str
    attempt: int
    draw: Random


@dataclass
class Receipt:
    """One planned fault on its way. `call` is the call that carries it."""

    number: int
    due: Due
    call: int | None
    emit: Callable[[Faulted], None]
    stages: list[Stage] = field(default_factory=list)

    def enter(self, stage: Stage, detail: str = "") -> None:
        self.stages.append(stage)
        fault, due = self.due.fault, self.due
        self.emit(Faulted(self.number, fault.point, fault.effect, due.subtask, due.attempt, stage, self.call, detail))

    def saw(self) -> None:
        """The verifier rejected what carried this fault; said once."""
        if "delivered" in self.stages and "seen" not in self.stages:
            self.enter("seen")


class FaultSchedule:
    """The faults of one trial: tells what is due, and keeps every receipt."""

    def __init__(self, plan: FaultPlan, seed: int, scenario: str, repetition: int, emit: Callable[[Faulted], None]):
        self._plan, self._place, self._emit = plan, (seed, scenario, repetition), emit
        self.receipts: list[Receipt] = []

    def due(self, point: Point, subtasks: Iterable[str], attempt: int) -> list[Due]:
        """The faults due at `point` for this attempt at these subtasks, by subtask and then in the plan's order.

        A text carries one fault: where several are drawn for a subtask's content, the plan's first is due.
        """
        drawn = self._drawn(point, subtasks, attempt)
        if point == "call":
            return drawn
        first: dict[str, Due] = {}
        for due in drawn:
            first.setdefault(due.subtask, due)
        return list(first.values())

    def _drawn(self, point: Point, subtasks: Iterable[str], attempt: int) -> list[Due]:
        return [
            Due(fault, subtask, attempt, draw)
            for subtask in subtasks
            for number, fault in enumerate(self._plan.faults)
            if fault.point == point and fault.subtask in (EVERY, subtask)
            for draw in [draw_for(*self._place, subtask, attempt, number, fault.effect)]
            if attempt in fault.attempts or draw.random() < fault.probability
        ]

    def plan(self, due: Due, call: int | None) -> Receipt:
        """Open the receipt of a fault whose call or commit is now being made."""
        receipt = Receipt(len(self.receipts) + 1, due, call, self._emit)
        self.receipts.append(receipt)
        receipt.enter("planned")
        return receipt

    def close(self, answered: bool, in_lineage: Callable[[Receipt], bool]) -> None:
        """Say of each delivered fault how it ended. `in_lineage` tells whether what carried it is in the final answer."""
        for receipt in self.receipts:
            if "delivered" not in receipt.stages:
                continue
            if not answered:
                receipt.enter("gave_up")
            elif "seen" not in receipt.stages and in_lineage(receipt):
                receipt.enter("unnoticed")
            else:
                receipt.enter("recovered")
