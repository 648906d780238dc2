"""The scorecard as an HTML page and as Markdown."""

from __future__ import annotations

from pathlib import Path

from bench.read.render.drawing import style
from bench.read.render.escaping import escape_markdown
from bench.read.render.table import markdown
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
        tables=tables(card),
        provenance=list(provenance(card)),
    )


def as_markdown(card: Scorecard) -> str:
    lines = [f"# {escape_markdown(title(card))}", ""]
    lines += [f"**{escape_markdown(warning)}**\n" for warning in warnings(card)]
    first, *others = (markdown(table).replace("### ", "## ", 1) for table in tables(card))
    lines += [escape_markdown(ABOUT), "", first]
    lines += ["## In words", "", INTERVALS, "", *(f"- {escape_markdown(finding)}" for finding in findings(card)), "", *others]
    lines += ["## What it was made from", ""]
    lines += [f"- {escape_markdown(name)}: {escape_markdown(text)}" for name, text in provenance(card)]
    return "\n".join(lines) + "\n"
