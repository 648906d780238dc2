"""The table of the framework's part of live latency."""

from __future__ import annotations

from bench.read.analysis.frames import Run
from bench.read.analysis.live_seconds import live_seconds_of
from bench.read.analysis.published import Published
from bench.read.render.cells import Cell, Number
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.record.history import LiveSeconds

ModelAndArm = tuple[str, LiveSeconds]
"""A model's name, and the live seconds of its trials in one arm."""


def framework_time(run: Run, published: Published) -> list[Table]:
    """Return a table of the framework's share of live latency by arm; no table if no arm was live. For a replay this is the
    share in its recording."""
    rows = live_seconds_of(run)
    paper_column = TableColumn[ModelAndArm](
        "Share, paper", lambda row: _share_in_paper(published, row[1].scenario, row[1].architecture)
    )
    columns = (
        TableColumn[ModelAndArm]("Scenario", lambda row: row[1].scenario),
        TableColumn[ModelAndArm]("Model", lambda row: model_label(run, row[0])),
        TableColumn[ModelAndArm]("Fault plan", lambda row: row[1].plan),
        TableColumn[ModelAndArm]("Architecture", lambda row: row[1].architecture),
        TableColumn[ModelAndArm]("Trials", lambda row: row[1].trials),
        TableColumn[ModelAndArm]("Framework s in all", lambda row: Number(row[1].framework, 4)),
        TableColumn[ModelAndArm]("Latency s in all", lambda row: Number(row[1].latency, 2)),
        TableColumn[ModelAndArm]("Share", lambda row: Number(row[1].share, 4, percent=True)),
        TableColumn[ModelAndArm]("Share, by trial", lambda row: f"{row[1].least:.4%} to {row[1].most:.4%}"),
        *([paper_column] if published.has_figures else []),
    )
    notes = (
        "sums over the live trials, without those that ended in an error; by trial: the lowest and the highest share",
        "for a replay, these are the times of its recording; the replay's framework time is in the tables of every measure "
        "and is not part of the recorded latency",
        *([f"paper: framework time by latency, {published.paper.source}, Tables 1 and 2"] if published.has_figures else []),
    )
    return [table_of("framework_time", "Framework time of the live run", columns, rows, notes)] if rows else []


def _share_in_paper(published: Published, scenario: str, architecture: str) -> Cell:
    """Return the framework's share of latency in the paper; "–" if the paper does not have it."""
    try:
        framework = published.cell(scenario, "framework_seconds", architecture)
        latency = published.cell(scenario, "latency_seconds", architecture)
    except KeyError:
        return "–"
    return Number(framework.mean / latency.mean, 1, percent=True)


PARTS = (TablePart("latency", lambda of: framework_time(of.run, of.published), "latency"),)
