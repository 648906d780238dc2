"""The worlds of a run's trials, for the trace explorer and for `bench trace --trial`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from bench.worlds.read.steps import WorldStep

DETAILS = ("Effect", "Idempotency key", "Told", "Happened", "Policy", "Based on", "Why", "Question", "Shown", "What it says")
"""The names of the details that are shown in a terminal. The page shows all details."""
IDLE_LINE = "the agent did nothing: none of its calls changed the world"


@dataclass(frozen=True)
class WorldTrace:
    """The steps in a trial's world and its damage. `lacking` says why rows and the sources of damage are not shown; "" if they
    are shown."""

    steps: Sequence[WorldStep]
    damage: Mapping[str, int | None]
    recount: Mapping[str, int | None]
    harms: Sequence[Mapping[str, object]]
    lives: int
    lacking: str

    @property
    def is_idle(self) -> bool:
        """Whether no call of the agent changed its world."""
        done_calls = (step for step in self.steps if step.kind == "call" and step.how in ("done", "unheard"))
        return all(step.title.endswith("(read)") for step in done_calls)

    @property
    def json(self) -> dict[str, Any]:
        """The trace as JSON. Empty fields of a step are left out."""
        steps = [{name: value for name, value in asdict(step).items() if value not in ("", (), None)} for step in self.steps]
        return {**vars(self), "steps": steps, "is_idle": self.is_idle}

    def lines(self) -> Iterator[str]:
        """Yield the trace as lines for a terminal."""
        if self.is_idle:
            yield IDLE_LINE
        yield from _damage_lines(self)
        yield from _step_lines(self)


def _damage_lines(world: WorldTrace) -> Iterator[str]:
    """Yield a line with the counts of damage, and a line for each damaged effect."""
    kinds = {kind: count for kind, count in world.damage.items() if count}
    yield "damage: " + (", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "none")
    for harm in world.harms:
        entries = ", ".join(map(str, harm["entries"])) if isinstance(harm["entries"], Sequence) else ""
        yield f"  {harm['kind']}: {harm['effect']} ({f'entries {entries}' if entries else 'no entry'})"
    if world.lacking:
        yield f"  rows, and what damage was counted from, are not shown: {world.lacking}"


def _step_lines(world: WorldTrace) -> Iterator[str]:
    """Yield the lines of all steps, with a line before each restart of the process. Writes to the store are joined."""
    life = 0
    for (kind, step_life), steps in groupby(world.steps, key=lambda step: (step.kind, step.life)):
        if step_life != life:
            life = step_life
            yield f"── life {life} of {world.lives} " + "─" * 40
        if kind == "stored":
            yield f"{'':21}wrote to its store: {', '.join(dict.fromkeys(step.title for step in steps))}"
        else:
            yield from (line for step in steps for line in _lines_of_step(step))


def _lines_of_step(step: WorldStep) -> Iterator[str]:
    """Yield the lines of one step: its title, details and changed rows."""
    time = "" if step.day is None else f"day {step.day} {step.minute // 60:02}:{step.minute % 60:02}"
    entry = f"[{step.entry}]" if step.entry else ""
    title = step.title if step.kind in ("call", "crash") else f"{step.kind}: {step.title}"
    how = f"  {step.how}" if step.kind == "call" else ""
    harms = f"  !! {', '.join(step.harms)}" if step.harms else ""
    mark = "✗ " if step.kind == "crash" else ""
    yield f"{time:>14} {entry:>5} {mark}{title}{how}{harms}"
    if step.kind != "event" and not _is_plain_read(step):
        details = [(name, text) for name, text in step.details if name in DETAILS and text != step.how]
        yield from (f"{'':21}{name.lower()}: {text}" for name, text in details)
    yield from (f"{'':21}{line}" for line in step.changes)


def _is_plain_read(step: WorldStep) -> bool:
    """Return whether a step is a read that was done and that the agent was told of."""
    return step.kind == "call" and step.title.endswith("(read)") and step.how == "done"
