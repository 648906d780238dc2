"""Faults: a random draw, which no architecture can influence, decides which faults are due; each planned fault has a receipt.

**Same schedule.** A draw depends only on (seed, scenario, instance, repetition, subtask, attempt, sample, fault): not on the
architecture, not on call order, not on concurrency. At a world's points, tool, business key and try replace subtask, attempt
and sample. A call that does several subtasks' work is exposed to the faults of each.
One text gets at most one fault: if several are drawn for the same part, input or output, the plan's first fault strikes. The
others are not planned, since two faults on one text would overwrite each other. A call can fail more than once.

**Receipts.** A fault is *planned* when its call or commit is about to be made; then *delivered*, or *not applicable* if it
could strike nothing; then perhaps *detected*; and at the trial's end *recovered*, *gave_up* or *undetected*.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from bench.common.seeding import draw_for
from bench.record.events import Faulted, Stage
from bench.record.plan_entries import EVERY, Point
from bench.run.trial.effects import EFFECTS, Effect
from bench.run.trial.key import TrialKey


@dataclass(frozen=True)
class Strike:
    """The place at which a fault strikes: a subtask, the attempt and the sample; in a world, a tool or a kind of event, the
    try, and the business key or the event."""

    target: str
    attempt: int
    key: str = ""
    sample: int = 1


@dataclass(frozen=True)
class Fault:
    """An effect at a point with a trigger: chosen attempts, `every` attempt, or a probability at each attempt.

    `subtask` names one subtask, or `*` for each; in a world it names a tool, or a kind of event, and the attempts are the tries
    of one effect. `seconds` is how long a `slow` call or a `timeout` takes, and the Retry-After of a `rate_limit`; `minutes` is
    world time. If `only` is given, a drawn strike is made only if it is in `only`; the draws stay the same.
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
        """Whether the fault strikes without end: at point `call` it strikes every request, while any other fault strikes one
        request of an attempt."""
        return self.attempts == "every"

    def names_attempt(self, attempt: int) -> bool:
        """Return whether the fault's trigger names this attempt."""
        return isinstance(self.attempts, str) or attempt in self.attempts

    def allows(self, strike: Strike) -> bool:
        """Return whether `only` allows this strike."""
        return self.only is None or strike in self.only


@dataclass(frozen=True)
class FaultPlan:
    """A named set of faults; the plan without faults is the control."""

    name: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class DueFault:
    """A fault that is due by its draw. Whether its call will be made is not known yet. `number` is the fault's place in the
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
    """The receipt of one planned fault while its trial runs. `call` is the number of the call that carries the fault."""

    number: int
    due: DueFault
    call: int | None
    emit: Callable[[Faulted], object]
    stages: list[Stage] = field(default_factory=list)

    def enter(self, stage: Stage, detail: str = "") -> None:
        """Add a stage to the receipt and log it."""
        self.stages.append(stage)
        fault, due = self.due.fault, self.due
        self.emit(Faulted(self.number, fault.point, fault.effect, due.subtask, due.attempt, stage, self.call, detail))

    @property
    def is_delivered(self) -> bool:
        return "delivered" in self.stages

    def detect(self) -> None:
        """Record once that the text that carried this fault was rejected, or that its call failed."""
        if self.is_delivered and "detected" not in self.stages:
            self.enter("detected")


class FaultSchedule:
    """The faults of one trial: it draws which faults are due, and keeps the receipts."""

    def __init__(self, plan: FaultPlan, key: TrialKey, emit: Callable[[Faulted], object]):
        self._plan, self._key, self._emit = plan, key, emit
        self._points = {fault.point for fault in plan.faults}
        self.receipts: list[OpenReceipt] = []

    def due(self, point: Point, subtasks: Iterable[str], attempt: int, sample: int = 1) -> list[DueFault]:
        """Return the faults that are due for an attempt.

        A text gets at most one fault: if several are drawn for a subtask's content, the plan's first is due.

        Args:
            point: Where the faults strike.
            subtasks: The subtasks of the attempt.
            attempt: The number of the attempt, from 1.
            sample: The number of the sample within the attempt, from 1.

        Returns:
            The faults, by subtask and then in the plan's order.
        """
        if point not in self._points:
            return []
        drawn = [due for subtask in subtasks for due in self._draw_due(point, subtask, attempt, sample)]
        if point == "call":
            return drawn
        first_by_subtask: dict[str, DueFault] = {}
        for due in drawn:
            first_by_subtask.setdefault(due.subtask, due)
        return list(first_by_subtask.values())

    def _draw_due(self, point: Point, subtask: str, attempt: int, sample: int) -> Iterator[DueFault]:
        """Yield the faults that are due for one subtask's attempt and sample."""
        sample_key = ("sample", sample) if sample > 1 else ()
        for number, fault in enumerate(self._plan.faults):
            if fault.point == point and fault.subtask in (EVERY, subtask):
                draw = draw_for(*self._key.drawn_from, subtask, attempt, *sample_key, number, fault.effect)
                is_chosen = sample == 1 and fault.names_attempt(attempt)
                if is_chosen or draw.random() < fault.probability:
                    due = DueFault(fault, number, subtask, attempt, draw, sample)
                    if fault.allows(due.strike):
                        yield due

    def due_in_world(
        self, points: Container[Point], target: str, key: str, try_: int, fits: Callable[[Fault], bool]
    ) -> DueFault | None:
        """Return the fault that is due for a try of an effect, or at an event of a world.

        The draw depends only on (seed, scenario, repetition, tool or kind of event, business key or event, try, fault).

        Args:
            points: Where a fault may strike.
            target: The tool, or the kind of the event.
            key: The effect's business key, or the event.
            try_: The number of the try, from 1.
            fits: Returns whether a fault of the plan can strike here.

        Returns:
            The plan's first of the faults that are drawn; None if none is.
        """
        for number, fault in enumerate(self._plan.faults):
            if fault.point in points and fault.subtask in (EVERY, target) and fits(fault):
                draw = draw_for(*self._key.drawn_from, fault.point, target, key, try_, number, fault.effect)
                if fault.names_attempt(try_) or draw.random() < fault.probability:
                    due = DueFault(fault, number, target, try_, draw, key=key)
                    if fault.allows(due.strike):
                        return due
        return None

    @property
    def effects(self) -> Iterator[Effect]:
        """The effects of all faults in this trial's plan."""
        return (EFFECTS[fault.effect, fault.point] for fault in self._plan.faults)

    def plan(self, due: DueFault, call: int | None) -> OpenReceipt:
        """Open the receipt of a due fault whose call or commit is about to be made."""
        receipt = OpenReceipt(len(self.receipts) + 1, due, call, self._emit)
        self.receipts.append(receipt)
        receipt.enter("planned")
        return receipt

    def close(self, answered: bool, in_answer: Callable[[OpenReceipt], bool]) -> None:
        """Record the end of each delivered fault. `in_answer` returns whether the text that carried a fault is in the final
        answer."""
        for receipt in self.receipts:
            if not receipt.is_delivered:
                continue
            if not answered:
                receipt.enter("gave_up")
            elif "detected" not in receipt.stages and in_answer(receipt):
                receipt.enter("undetected")
            else:
                receipt.enter("recovered")
