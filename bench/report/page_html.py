"""The report as one page that needs nothing beside it: styles, scripts, figures, events and texts are in it."""

from __future__ import annotations

from bench.report.html import rendered, source
from bench.report.page import Page
from bench.report.trace import Trace

SCRIPTS = ("page_data.js", "page_tables.js", "page_list.js", "page_trial.js", "page_call.js", "page_world.js", "page.js")
"""One program, in this order."""


def as_html(page: Page, trace: Trace | None) -> str:
    """The page; without a trace, without the trials."""
    return rendered("page.html.j2", source("page.css"), "".join(map(source, SCRIPTS)), page=page, trace=trace)
