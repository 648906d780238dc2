"""The worlds of a run's trials, as the trace explorer and `bench trace --trial` show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.record.worlds.damage import Remade

from bench.common.errors import BenchError
from bench.common.paths import PACKS
from bench.read.analysis.frames import Run
from bench.record.reading import read_texts
from bench.record.record import TrialRecord
from bench.record.worlds.events import WorldEnded
from bench.rerun.remade import remade
from bench.run.experiment.keys import key_of
from bench.run.packs import load_pack
from bench.worlds.read.report.steps import WorldStep, harms_told, steps_of
from bench.worlds.run.environment import Environment

MOST_REMADE = 200
"""Most trials of a page whose worlds are rebuilt. For the others the page shows no rows, and says so."""
DUMP = "BEGIN TRANSACTION;\nCREATE TABLE"
"""The beginning of a world's SQL in a record."""
SHOWN = ("Effect", "Idempotency key", "Told", "Happened", "Policy", "Based on", "Why", "Question", "Shown", "What it says")
"""Details that a terminal has room for. The page shows all."""
IDLE = "the agent did nothing: none of its calls changed the world"
UNKEPT = "its last state is not in the run's texts"


@dataclass(frozen=True)
class WorldTrace:
    """`lacking`: why rows and the sources of damage are not shown, or ""."""

    steps: Sequence[WorldStep]
    damage: Mapping[str, int | None]
    recount: Mapping[str, int | None]
    harms: Sequence[Mapping[str, object]]
    lives: int
    lacking: str

    @property
    def is_idle(self) -> bool:
        """Return whether no call of the agent changed its world."""
        done = (step for step in self.steps if step.kind == "call" and step.how in ("done", "unheard"))
        return all(step.title.endswith("(read)") for step in done)

    @property
    def json(self) -> dict[str, Any]:
        """Return the trace as JSON. Empty fields of a step are left out."""
        steps = [{name: value for name, value in asdict(step).items() if value not in ("", (), None)} for step in self.steps]
        return {**vars(self), "steps": steps, "is_idle": self.is_idle}

    def lines(self) -> Iterator[str]:
        if self.is_idle:
            yield IDLE
        yield from _damage_told(self)
        yield from _steps_told(self)


def texts_of_worlds(run: Run, folders: Iterable[Path]) -> dict[str, str]:
    """Return digest -> text, or nothing if no trial of the run has a world."""
    if run.trials["lives"].isna().all():
        return {}
    return {digest: text for folder in folders for digest, text in read_texts(folder).items()}


class Worlds:
    """Rebuilds the worlds of a run's trials. `packs` are the folders that hold the packs."""

    def __init__(self, run: Run, texts: Mapping[str, str], packs: Sequence[Path] = PACKS):
        self._seed, self._texts, self._packs = run.config.seed, texts, packs
        self._made = 0
        self._environment = cache(self._load)

    def of(self, record: TrialRecord) -> WorldTrace | None:
        """Return the trace of a trial. None if it has no world, or did not come to its end."""
        ended = next((event for event in record.events if isinstance(event, WorldEnded)), None)
        if ended is None:
            return None
        world = self._remade(record, ended)
        steps = steps_of(record.events, world, self._texts)
        return WorldTrace(steps, ended.damage, ended.recount, harms_told(world), ended.lives, world.lacking)

    def _remade(self, record: TrialRecord, ended: WorldEnded) -> Remade:
        if ended.kept not in self._texts:
            return Remade((), lacking=UNKEPT)
        self._made += 1
        if self._made > MOST_REMADE:
            return Remade(
                (), lacking=f"a page has room for those of {MOST_REMADE} trials; bench trace RUN --trial ID shows all"
            )
        environment = self._environment(record.scenario, record.instance)
        return remade(self._texts[ended.kept], ended.digest, environment, key_of(self._seed, record).drawn_from)

    def _load(self, scenario: str, instance: str) -> Environment | None:
        try:
            environment: Environment | None = load_pack(scenario, self._packs, instance).environment
        except BenchError:
            return None
        return environment


def _damage_told(world: WorldTrace) -> Iterator[str]:
    kinds = {kind: count for kind, count in world.damage.items() if count}
    yield "damage: " + (", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "none")
    for harm in world.harms:
        entries = ", ".join(map(str, harm["entries"])) if isinstance(harm["entries"], Sequence) else ""
        yield f"  {harm['kind']}: {harm['effect']} ({f'entries {entries}' if entries else 'no entry'})"
    if world.lacking:
        yield f"  rows, and what damage was counted from, are not shown: {world.lacking}"


def _steps_told(world: WorldTrace) -> Iterator[str]:
    life = 0
    for (kind, of), steps in groupby(world.steps, key=lambda step: (step.kind, step.life)):
        if of != life:
            life = of
            yield f"── life {life} of {world.lives} " + "─" * 40
        if kind == "stored":
            yield f"{'':21}wrote to its store: {', '.join(dict.fromkeys(step.title for step in steps))}"
        else:
            yield from (line for step in steps for line in _step(step))


def _step(step: WorldStep) -> Iterator[str]:
    when = "" if step.day is None else f"day {step.day} {step.minute // 60:02}:{step.minute % 60:02}"
    what = step.title if step.kind in ("call", "crash") else f"{step.kind}: {step.title}"
    how = f"  {step.how}" if step.kind == "call" else ""
    harms = f"  !! {', '.join(step.harms)}" if step.harms else ""
    mark = "✗ " if step.kind == "crash" else ""
    yield f"{when:>14} {f'[{step.entry}]' if step.entry else '':>5} {mark}{what}{how}{harms}"
    if step.kind != "event" and not _is_plain_read(step):
        yield from (f"{'':21}{name.lower()}: {text}" for name, text in step.details if name in SHOWN and text != step.how)
    yield from (f"{'':21}{line}" for line in step.changes)


def _is_plain_read(step: WorldStep) -> bool:
    return step.kind == "call" and step.title.endswith("(read)") and step.how == "done"
