"""The table of failures that nobody planned."""

from __future__ import annotations

from bench.analysis.frames import Run
from bench.analysis.natural import Rejections, natural_failures
from bench.analysis.published import PublishedFigures
from bench.analysis.replies import KINDS, MALFORMED
from bench.render.labels import model_label
from bench.render.table import Cell, Number, Rate, Table
from bench.report.table_part import TablePart
from bench.runtime.verification import ViolationKind

EVERY_CALL = "every call"
MISSING: tuple[ViolationKind, ...] = ("missing_field",)
WORDS: dict[tuple[ViolationKind, ...], str] = {
    KINDS: "any",
    MALFORMED: "does not fit its schema",
    ("cut_off",): "cut off",
    MISSING: "form: a missing field",
    ("form",): "form: other",
    ("vocabulary",): "closed vocabulary",
    ("content",): "content",
    ("insufficient",): "insufficient",
}


def natural_table(run: Run, published: PublishedFigures) -> Table:
    """How often replies were rejected that no fault had touched, by subtask and kind."""
    found = list(natural_failures(run))
    return Table(
        name="natural_failures",
        title="Failures that nobody planned, by distinct reply",
        columns=("Scenario", "Model", "Subtask", "Trials that came so far", "Kind", "Rejected", "Counts as", "Paper"),
        rows=tuple(_row(run, one, published) for one in found),
        notes=(
            "a reply is counted once, however many subtasks it held and architectures and plans were given it; replies that "
            "carried a fault, and what was made from those, are left out",
            "a rejected reply is of one kind, the first in this order: " + ", ".join(WORDS[kind,] for kind in KINDS),
            "closed vocabulary: its form is right, but a field holds a word outside the list that it may take; content: a "
            "check or a later validation refused it; insufficient: right so far as it goes; of a schema's violations a record "
            "keeps the first three",
            "counts as: so many independent replies, which is their number by the design effect; replies of one repetition, or "
            "of one instance where there are several, are a cluster, and where none or all were rejected a cluster counts "
            "once; the interval is Wilson's of that number, and wider by t's quantiles where the clusters are few",
            *_survivors(found),
            *_sources(run, published),
        ),
    )


def _row(run: Run, one: Rejections, published: PublishedFigures) -> tuple[Cell, ...]:
    came = "–" if one.reached is None else "{} of {}".format(*one.reached)
    place = (one.scenario, model_label(run, one.model), one.subtask or EVERY_CALL, came)
    return *place, WORDS[one.kinds], Rate(one.share), Number(one.counts_as, 1), _paper(one, published)


def _paper(one: Rejections, published: PublishedFigures) -> str:
    """Beside our missing fields: no other kind is among the paper's failures."""
    found = published.natural(one.scenario) if (one.subtask, one.kinds) == (None, MISSING) else None
    return f"{found.failures}/{found.executions}" if found else "–"


def _survivors(found: list[Rejections]) -> list[str]:
    late = dict.fromkeys(one.subtask or "" for one in found if one.reached and one.reached[0] < one.reached[1])
    if not late:
        return []
    said = "not every trial came so far as these calls, so their rates are those of survivors"
    return [f"{said}: {', '.join(late)}"]


def _sources(run: Run, published: PublishedFigures) -> list[str]:
    """Where the paper's counts stand, for the packs of this run."""
    counted = (published.natural(scenario) for scenario in run.names("scenario"))
    said = (f"{one.place}{': ' + one.note if one.note else ''}" for one in counted if one)
    return [f"paper: schema failures of subtask executions, {published.paper.source}, {one}" for one in dict.fromkeys(said)]


PARTS = (TablePart("natural_failures", lambda of: natural_table(of.run, of.published), "faults"),)
