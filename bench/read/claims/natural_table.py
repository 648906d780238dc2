"""The table of natural failures: replies that were rejected although no fault had touched them."""

from __future__ import annotations

from bench.read.analysis.frames import Run
from bench.read.analysis.published import Published
from bench.read.analysis.replies import KINDS, MALFORMED
from bench.read.claims.natural import Rejections, natural_failures
from bench.read.render.cells import Number, Rate
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.record.events import ViolationKind

EVERY_CALL = "every call"
SURVIVORS = "not every trial reached these calls, so their rates are rates of survivors"
MISSING_FIELD: tuple[ViolationKind, ...] = ("missing_field",)
KIND_TEXTS: dict[tuple[ViolationKind, ...], str] = {
    KINDS: "any",
    MALFORMED: "does not fit its schema",
    ("cut_off",): "cut off",
    MISSING_FIELD: "form: a missing field",
    ("form",): "form: other",
    ("vocabulary",): "closed vocabulary",
    ("content",): "content",
    ("insufficient",): "insufficient",
}


def natural_table(run: Run, published: Published) -> Table:
    """Return the table: how often replies without a fault were rejected, by subtask and kind."""
    rejections = list(natural_failures(run))
    columns = (
        TableColumn[Rejections]("Scenario", lambda row: row.scenario),
        TableColumn[Rejections]("Model", lambda row: model_label(run, row.model)),
        TableColumn[Rejections]("Subtask", lambda row: row.subtask or EVERY_CALL),
        TableColumn[Rejections]("Trials that came so far", lambda row: "{} of {}".format(*row.reached) if row.reached else "–"),
        TableColumn[Rejections]("Kind", lambda row: KIND_TEXTS[row.kinds]),
        TableColumn[Rejections]("Rejected", lambda row: Rate(row.share)),
        TableColumn[Rejections]("Counts as", lambda row: Number(row.counts_as, 1)),
        *([TableColumn[Rejections]("Paper", lambda row: _paper_count(row, published))] if published.has_figures else []),
    )
    partial = dict.fromkeys(
        row.subtask for row in rejections if row.subtask and row.reached and row.reached[0] < row.reached[1]
    )
    notes = (
        "a reply counts once, even if it held several subtasks or if several architectures and plans used it; replies with a "
        "fault, and replies made from them, are left out",
        "a rejected reply has one kind, the first that applies: " + ", ".join(KIND_TEXTS[kind,] for kind in KINDS),
        "closed vocabulary: the form is right, but a field holds a word that is not in its list; content: a check or a later "
        "validation refused the reply; insufficient: the reply is right but not enough; a record keeps the first three "
        "violations of a schema",
        "counts as: the effective number of independent replies, which is their number divided by the design effect; a "
        "cluster is one instance, or one repetition if there is only one instance; if none or all were rejected, each cluster "
        "counts once; the interval is Wilson's for that number, widened by Student's t if there are few clusters",
        *([f"{SURVIVORS}: {', '.join(partial)}"] if partial else []),
        *_paper_sources(run, published),
    )
    return table_of("natural_failures", "Failures that nobody planned, by distinct reply", columns, rejections, notes)


def _paper_count(rejection: Rejections, published: Published) -> str:
    """Return the paper's count of failures beside ours; "–" if it has none. The paper counts only missing fields."""
    is_counted = rejection.subtask is None and rejection.kinds == MISSING_FIELD
    figures = published.natural(rejection.scenario) if is_counted else None
    return f"{figures.failures}/{figures.executions}" if figures else "–"


def _paper_sources(run: Run, published: Published) -> list[str]:
    """Return where the paper prints its counts, for the packs of this run."""
    counted = (published.natural(scenario) for scenario in run.names("scenario"))
    notes = (
        f"{published_rate.place}{': ' + published_rate.note if published_rate.note else ''}"
        for published_rate in counted
        if published_rate
    )
    return [f"paper: schema failures of subtask executions, {published.paper.source}, {text}" for text in dict.fromkeys(notes)]


TABLES = (TablePart("natural_failures", lambda of: natural_table(of.run, of.published), "faults"),)
