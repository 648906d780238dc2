"""The report as one page that needs no other file: it contains styles, scripts, figures, events and texts."""

from __future__ import annotations

from bench.read.report.html import render, source
from bench.read.report.page import Page
from bench.read.report.trace import Trace

SCRIPTS = ("page_data.js", "page_tables.js", "page_list.js", "page_trial.js", "page_call.js", "page_world.js", "page.js")
"""The files of the page's script, which is their texts joined in this order."""


def as_html(page: Page, trace: Trace | None) -> str:
    """Return the report's page as HTML. Without a trace the page has no list of trials."""
    return render("page.html.j2", source("page.css"), "".join(map(source, SCRIPTS)), page=page, trace=trace)
