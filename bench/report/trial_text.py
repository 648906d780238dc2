"""One trial in a world as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bench.analysis.frames import Run
from bench.analysis.merge import records_of
from bench.errors import ConfigError
from bench.report.world_steps import WorldStep
from bench.report.world_trace import Worlds, WorldTrace, texts_of_worlds

NAMES = ["scenario", "instance", "architecture", "model", "fault"]
MOST_LISTED = 12
SHOWN = ("Effect", "Idempotency key", "Told", "Happened", "Policy", "Based on", "Why", "Question", "What it says")
"""Details that a terminal has room for; the page has all."""


def text_of_trial(run: Run, wanted: str, packs: Sequence[Path]) -> str:
    """Raises ConfigError where no trial fits, several do, or it has no world."""
    trial = _found(run, wanted)
    folders = [run.folder] if run.folder else []
    worlds = Worlds(run, texts_of_worlds(run, folders), packs)
    *_, record = [one for one in records_of(run) or () if one.id == trial]
    world = worlds.of(record)
    if world is None:
        raise ConfigError(f"trial {trial[:8]} has no world, or did not come to its end; its calls stand on the report's page")
    of = f" {record.instance}" if record.instance else ""
    head = f"{record.scenario}{of}, {record.architecture}, {record.plan}, repetition {record.repetition}: {record.outcome}"
    note = [record.grade.note] if record.grade and record.grade.note else []
    return "\n".join([f"trial {trial}", head, *note, *_damage(world), *_steps(world)])


def _found(run: Run, wanted: str) -> str:
    """The id of the trial that goes by all these names."""
    parts = wanted.split("/")
    rows = run.trials[["trial", *NAMES]].itertuples(index=False, name=None)
    fitting = [row for row in rows if all(part in row[1:] or (part and row[0].startswith(part)) for part in parts)]
    if len(fitting) == 1:
        return str(fitting[0][0])
    if not fitting:
        raise ConfigError(f"no trial goes by '{wanted}'; the report's page lists them, each with its id")
    listed = "; ".join(f"{row[0][:12]} {' '.join(filter(None, row[2:]))}" for row in fitting[:MOST_LISTED])
    more = f"; and {len(fitting) - MOST_LISTED} more" if len(fitting) > MOST_LISTED else ""
    raise ConfigError(f"{len(fitting)} trials go by '{wanted}'; add a name, or give one's id: {listed}{more}")


def _damage(world: WorldTrace) -> Iterator[str]:
    kinds = {kind: count for kind, count in world.damage.items() if count}
    yield "damage: " + (", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "none")
    for harm in world.harms:
        entries = ", ".join(map(str, harm["entries"])) if isinstance(harm["entries"], Sequence) else ""
        yield f"  {harm['kind']}: {harm['effect']} ({f'entries {entries}' if entries else 'no entry'})"
    if world.lacking:
        yield f"  rows, and what damage was counted from, are not shown: {world.lacking}"


def _steps(world: WorldTrace) -> Iterator[str]:
    life = 0
    for (kind, of), own in groupby(world.steps, key=lambda step: (step.kind, step.life)):
        if of != life:
            life = of
            yield f"── life {life} of {world.lives} " + "─" * 40
        if kind == "stored":
            yield f"{'':21}wrote to its store: {', '.join(dict.fromkeys(step.title for step in own))}"
        else:
            yield from (line for step in own for line in _step(step))


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
