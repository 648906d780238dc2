"""One trial as lines for a terminal."""

from __future__ import annotations

from itertools import chain

from bench.common.errors import ConfigError
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import records_of
from bench.read.report.surroundings import ViewMaker
from bench.read.report.trial_calls import call_lines, end_lines
from bench.record.reading import read_texts

NAMES = ["scenario", "instance", "architecture", "model", "plan"]
"""Columns whose names select a trial; `#3` is its repetition."""
MOST_LISTED = 12


def text_of_trial(run: Run, wanted: str, around: ViewMaker) -> str:
    """Return what happened in a trial: its world's steps, or its calls if it has no world.

    Args:
        run: The run, with its folder.
        wanted: The beginning of the trial's id, or names of NAMES joined by /.
        around: Makes the view of its world.

    Raises:
        ConfigError: No trial fits, or several do.
    """
    trial = _trial_of(run, wanted)
    texts = read_texts(run.folder) if run.folder else {}
    *_, record = list(records_of(run, [trial]) or ())
    views = around.views(run, texts).of(record).values()
    of = f" {record.instance}" if record.instance else ""
    head = f"{record.scenario}{of}, {record.architecture}, {record.plan}, repetition {record.repetition}: {record.outcome}"
    note = [record.grade.note] if record.grade and record.grade.note else []
    middle = chain.from_iterable(view.lines() for view in views) if views else call_lines(record)
    return "\n".join([f"trial {trial}", head, *note, *middle, *end_lines(record, texts)])


def _trial_of(run: Run, wanted: str) -> str:
    """Return the id of the trial that has all these names."""
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
