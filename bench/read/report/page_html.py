"""The report as one page that needs no other file: it contains styles, scripts, figures, events and texts."""

from __future__ import annotations

from pathlib import Path

from bench.read.render.html import TABLE_SCRIPTS, render, source
from bench.read.report.page import Page
from bench.read.report.trace import Trace

FOLDER = Path(__file__).parent
SCRIPTS = ("page_list.js", "page_trial.js", "page_call.js", "page_world.js", "page.js")
"""The files of the page's own script, in the order in which their texts are joined."""


def as_html(page: Page, trace: Trace | None) -> str:
    """Return the report's page as HTML. Without a trace the page has no list of trials."""
    return render("page.html.j2", source("page.css"), script(), FOLDER, page=page, trace=trace)


def script() -> str:
    """Return the page's script: the scripts of tables, then its own."""
    return "".join((*map(source, TABLE_SCRIPTS), *(source(name, FOLDER) for name in SCRIPTS)))
