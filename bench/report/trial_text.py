"""One trial as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bench.analysis.frames import Run
from bench.analysis.merge import records_of
from bench.errors import ConfigError
from bench.experiment.reading import read_texts
from bench.report.trial_calls import calls_told, end_told
from bench.worlds.report.steps import WorldStep
from bench.worlds.report.trace import Worlds, WorldTrace

NAMES = ["scenario", "instance", "architecture", "model", "plan"]
"""Columns of names by which a trial goes; `#3` is its repetition."""
MOST_LISTED = 12
SHOWN = ("Effect", "Idempotency key", "Told", "Happened", "Policy", "Based on", "Why", "Question", "What it says")
"""Details that a terminal has room for; the page has all."""


def text_of_trial(run: Run, wanted: str, packs: Sequence[Path]) -> str:
    """Return what happened in a trial: the steps of its world, or its calls where it has none.

    Args:
        run: The run, with its folder.
        wanted: The beginning of the trial's id, or names it goes by, joined by /.
        packs: The folders in which packs are looked for.

    Raises:
        ConfigError: No trial fits, or several do.
    """
    trial = _found(run, wanted)
    texts = read_texts(run.folder) if run.folder else {}
    *_, record = [one for one in records_of(run) or () if one.id == trial]
    world = Worlds(run, texts, packs).of(record)
    of = f" {record.instance}" if record.instance else ""
    head = f"{record.scenario}{of}, {record.architecture}, {record.plan}, repetition {record.repetition}: {record.outcome}"
    note = [record.grade.note] if record.grade and record.grade.note else []
    middle = calls_told(record) if world is None else (*_damage(world), *_steps(world))
    return "\n".join([f"trial {trial}", head, *note, *middle, *end_told(record, texts)])


def _found(run: Run, wanted: str) -> str:
    """The id of the trial that goes by all these names."""
    parts = wanted.split("/")
    named = run.trials[["trial", *NAMES]].assign(number="#" + run.trials["repetition"].astype(str))
    rows = named.itertuples(index=False, name=None)
    fitting = [row for row in rows if all(part in row[1:] or (part and row[0].startswith(part)) for part in parts)]
    if len(fitting) == 1:
        return str(fitting[0][0])
    if not fitting:
        raise ConfigError(f"no trial goes by '{wanted}'; the report's page lists them, each with its id")
    listed = "; ".join(f"{row[0][:12]} {' '.join(filter(None, row[1:]))}" for row in fitting[:MOST_LISTED])
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
