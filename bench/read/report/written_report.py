"""Make the files of a run's report: `report.md`, `report.html`, `tables/` and `figures/`.

They are made from the run's frames; events and texts are read only for the page's trace explorer. The same results always give
the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from bench.read.analysis.arms import require_receipts
from bench.read.analysis.frames import Run
from bench.read.analysis.results import Results
from bench.read.claims.judging import claims_sentence, findings, judge_paper
from bench.read.claims.table import verdict_lines
from bench.read.render.drawing import Picture
from bench.read.render.table import Table, comma_separated, markdown
from bench.read.report.figures import all_figures
from bench.read.report.page import Page, as_markdown, page_of
from bench.read.report.page_html import as_html
from bench.read.report.summary import Summary
from bench.read.report.surroundings import ViewMaker
from bench.read.report.tables import all_tables
from bench.read.report.trace import Trace, trace_of

TableOrPicture = TypeVar("TableOrPicture", Table, Picture)


@dataclass(frozen=True)
class Report:
    """A report. `files` maps a path in the report's folder to its content, pages first. `summary` and `verdicts`, lines on
    published claims, are shown in a terminal."""

    files: Mapping[str, bytes]
    summary: Summary
    verdicts: tuple[str, ...]


@dataclass(frozen=True)
class Contents:
    """What a report shows, before it is written in any format."""

    page: Page
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...]


def report_of(run: Run, around: ViewMaker | None = None, pdf: bool = False, trace: Trace | None = None) -> Report:
    """Make the files of a run's report.

    Args:
        run: The run, as recorded or put together from several.
        around: Makes the views of trials in worlds; without it the page shows their calls alone.
        pdf: Write each figure as PDF too.
        trace: The data of the page's trace explorer, if `load_traced` has made it; else the trials are read once more.

    Raises:
        ResultsError: A fault did not arrive, so that no number may be reported, or the run's folder cannot be read again.
    """
    results = Results(run)
    contents = contents_of(results)
    lines = tuple(verdict_lines(run, results.once(judge_paper)))
    del results  # what it keeps of a large run need not be held while the trials are read again
    explorer = trace or trace_of(run, around)
    return Report(_files(contents, explorer, pdf), contents.page.summary, lines)


def contents_of(results: Results) -> Contents:
    """Return the page, tables and figures of a run's report. Raises ResultsError as `report_of` does."""
    require_receipts(results.run)
    tables = _with_unique_names(all_tables(results))
    pictures = _with_unique_names(all_figures(results))
    page = page_of(results, tables, pictures, tuple(findings(results)), claims_sentence(results))
    return Contents(page, tuple(tables), tuple(pictures))


def _files(contents: Contents, trace: Trace | None, pdf: bool) -> dict[str, bytes]:
    """Return the content of each file of the report by its path."""
    page, tables, pictures = contents.page, contents.tables, contents.pictures
    files = {
        "report.md": as_markdown(page).encode(),
        "report.html": as_html(page, trace).encode(),
    }
    for table in tables:
        for ending, text in (("md", markdown(table)), ("csv", comma_separated(table))):
            files[f"tables/{table.name}.{ending}"] = text.encode()
    for picture in pictures:
        files[f"figures/{picture.name}.png"] = picture.png
        files |= {f"figures/{picture.name}.pdf": picture.pdf} if pdf else {}
    return files


def _with_unique_names(items: Iterable[TableOrPicture]) -> list[TableOrPicture]:
    """Return the items, with a number in the name of each item whose name another item has before it: names are file names."""
    uses: Counter[str] = Counter()
    renamed = []
    for item in items:
        uses[item.name] += 1
        number = uses[item.name]
        renamed.append(item if number == 1 else replace(item, name=f"{item.name}.{number}"))
    return renamed
