"""The scorecard as an HTML page and as Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.read.render.drawing import style
from bench.read.render.escaping import escape_markdown
from bench.read.render.table import Table, markdown
from bench.read.report.html import rendered, source
from bench.worlds.read.scorecard.card import Scorecard
from bench.worlds.read.scorecard.pictures import pictures
from bench.worlds.read.scorecard.tables import tables
from bench.worlds.read.scorecard.words import ABOUT, INTERVALS, SIMULATED, findings, headline, provenance


def title(card: Scorecard) -> str:
    return f"Recovery scorecard: {', '.join(world.name for world in card.worlds)}"


def warnings(card: Scorecard) -> list[str]:
    """Return what a reader must know before any number."""
    return [SIMULATED] if any(row.whose == "simulated" for row in card.rows) else []


def as_html(card: Scorecard) -> str:
    """Return one page that needs no other file."""
    with style():
        drawn = list(pictures(card))
    return rendered(
        "page.html.j2",
        source("page.css"),
        folder=Path(__file__).parent,
        title=title(card),
        headline=headline(card),
        names=[name for row in card.rows for name in (row.world, row.system, row.model)],
        warnings=warnings(card),
        about=ABOUT,
        intervals=INTERVALS,
        findings=list(findings(card)),
        pictures=drawn,
        tables=[_by_world(table) for table in tables(card)],
        provenance=list(provenance(card)),
    )


def _by_world(table: Table) -> list[Table]:
    """Return a table for each world, so that the world stands once, above its rows. The last has the notes."""
    place = table.columns.index("Scenario")
    rows = [[row for row in table.rows if row[place] == world] for world in dict.fromkeys(row[place] for row in table.rows)]
    parts = [replace(table, name=f"{table.name}-{n}", rows=tuple(each), notes=()) for n, each in enumerate(rows[:-1], 1)]
    return [*parts, replace(table, rows=tuple(rows[-1]) if rows else ())]


def as_markdown(card: Scorecard) -> str:
    lines = [f"# {escape_markdown(title(card))}", ""]
    lines += [f"**{escape_markdown(warning)}**\n" for warning in warnings(card)]
    first, *others = (markdown(table).replace("### ", "## ", 1) for table in tables(card))
    lines += [escape_markdown(ABOUT), "", first]
    lines += ["## In words", "", INTERVALS, "", *(f"- {escape_markdown(finding)}" for finding in findings(card)), "", *others]
    lines += ["## What it was made from", ""]
    lines += [f"- {escape_markdown(name)}: {escape_markdown(text)}" for name, text in provenance(card)]
    return "\n".join(lines) + "\n"
