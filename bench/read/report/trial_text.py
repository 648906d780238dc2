"""One trial as lines for a terminal."""

from __future__ import annotations

from itertools import chain

from bench.common.errors import ConfigError
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import records_of
from bench.read.report.surroundings import ViewMaker
from bench.read.report.trial_calls import call_lines, end_lines
from bench.record.reading import read_texts

SELECTORS = ["scenario", "instance", "architecture", "model", "plan"]
"""The columns of the trials whose values select a trial. `#3` selects the third repetition."""
MAX_LISTED_TRIALS = 12


def text_of_trial(run: Run, wanted: str, around: ViewMaker) -> str:
    """Return what happened in a trial: its world's steps, or its calls if it has no world.

    Args:
        run: The run, with its folder.
        wanted: The beginning of the trial's id, or values of SELECTORS joined by /.
        around: Makes the view of the trial's world.

    Raises:
        ConfigError: No trial fits, or several do.
    """
    trial = _trial_id(run, wanted)
    texts = read_texts(run.folder) if run.folder else {}
    *_, record = list(records_of(run, [trial]) or ())  # the last record, if the trial was run again
    views = around.views(run, texts).of(record).values()
    instance = f" {record.instance}" if record.instance else ""
    names = f"{record.scenario}{instance}, {record.architecture}, {record.plan}, repetition {record.repetition}"
    note = [record.grade.note] if record.grade and record.grade.note else []
    body = chain.from_iterable(view.lines() for view in views) if views else call_lines(record)
    return "\n".join([f"trial {trial}", f"{names}: {record.outcome}", *note, *body, *end_lines(record, texts)])


def _trial_id(run: Run, wanted: str) -> str:
    """Return the id of the only trial that every part of `wanted` selects. Raises ConfigError if none or several fit."""
    parts = wanted.split("/")
    selectable = run.trials[["trial", *SELECTORS]].assign(number="#" + run.trials["repetition"].astype(str))
    rows = selectable.itertuples(index=False, name=None)
    # A part is a name, `#` with a repetition, or the beginning of the id.
    matches = [row for row in rows if all(part in row[1:] or (part and row[0].startswith(part)) for part in parts)]
    if len(matches) == 1:
        return str(matches[0][0])
    if not matches:
        raise ConfigError(f"no trial goes by '{wanted}'; the report's page lists them, each with its id")
    listed = "; ".join(f"{trial[:12]} {' '.join(filter(None, names))}" for trial, *names in matches[:MAX_LISTED_TRIALS])
    more = f"; and {len(matches) - MAX_LISTED_TRIALS} more" if len(matches) > MAX_LISTED_TRIALS else ""
    raise ConfigError(f"{len(matches)} trials go by '{wanted}'; add a name, or give one's id: {listed}{more}")
