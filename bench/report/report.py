"""A run's report: `report.md`, `report.html`, `tables/` and `figures/`, from the run's frames; its events and texts are for the
page's trace explorer alone.

The same results give the same bytes, wherever and whenever they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bench.analysis.arms import arms_of, require_receipts
from bench.analysis.frames import Run
from bench.render.drawing import Picture
from bench.render.latex import latex, latex_document
from bench.render.table import Table, comma_separated, markdown
from bench.report.figures import all_figures
from bench.report.page import Page, as_markdown, page_of
from bench.report.page_html import as_html
from bench.report.summary import Summary
from bench.report.tables import all_tables
from bench.report.trace import trace_of
from bench.studies.claims.published import Published
from bench.studies.claims.table import verdict_finding
from bench.studies.claims.verdicts import JudgedSource, Judgement, can_judge, judge_all, judge_each

Drawn = TypeVar("Drawn", Table, Picture)


@dataclass(frozen=True)
class Report:
    """`files`: what is to be written, by its path in the report's folder, the pages first. `judgements`: the verdicts on the
    paper's claims; none where no scenario of theirs is in the run. `others`: those on other sources', where one is."""

    files: Mapping[str, bytes]
    summary: Summary
    judgements: tuple[Judgement, ...]
    others: tuple[JudgedSource, ...] = ()


@dataclass(frozen=True)
class Contents:
    """What a report shows, before it is written in any format."""

    page: Page
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...]
    judgements: tuple[Judgement, ...]
    others: tuple[JudgedSource, ...]


def report_of(run: Run, published: Published, others: Sequence[Published] = ()) -> Report:
    """Make the files of a run's report.

    Args:
        run: The run, as recorded or put together from several.
        published: The paper's figures, which stand beside ours.
        others: Further sources of claims.

    Raises:
        ResultsError: A fault did not arrive, so that no number may be reported, or the run's folder cannot be read again.
    """
    contents = contents_of(run, published, others)
    files = _files(run, contents.page, contents.tables, contents.pictures)
    return Report(files, contents.page.summary, contents.judgements, contents.others)


def contents_of(run: Run, published: Published, others: Sequence[Published] = ()) -> Contents:
    """Make the tables, figures and words of a run's report; arguments and errors are those of `report_of`."""
    require_receipts(run)
    arms = arms_of(run)
    judgements = judge_all(run, published, arms) if can_judge(run, published) else ()
    beside = judge_each(run, others, arms)
    tables = _named_apart(all_tables(run, arms, published, judgements, beside))
    pictures = _named_apart(all_figures(run, arms, published))
    verdicts = [
        verdict_finding(run, each.judgements, each.published) for each in (JudgedSource(published, judgements), *beside)
    ]
    page = page_of(run, tables, pictures, published, [finding for finding in verdicts if finding])
    return Contents(page, tuple(tables), tuple(pictures), judgements, beside)


def _files(run: Run, page: Page, tables: Sequence[Table], pictures: Sequence[Picture]) -> dict[str, bytes]:
    texts = {
        "report.md": as_markdown(page),
        "report.html": as_html(page, trace_of(run)),
        **{f"tables/{table.name}.md": markdown(table) for table in tables},
        **{f"tables/{table.name}.tex": _latex(page, table) for table in tables},
        **{f"tables/{table.name}.csv": comma_separated(table) for table in tables},
        "tables/all.tex": latex_document(page.title, page.warnings, tables),
    }
    return {
        **{name: text.encode() for name, text in texts.items()},
        **{f"figures/{picture.name}.png": picture.png for picture in pictures},
        **{f"figures/{picture.name}.svg": picture.svg for picture in pictures},
    }


def _latex(page: Page, table: Table) -> str:
    """A table of the paper's beside ours is a document by itself; any other is read by the document that it shall stand in."""
    return latex_document(page.title, page.warnings, [table]) if table.section == "paper" else latex(table)


def _named_apart(items: Iterable[Drawn]) -> list[Drawn]:
    """Names that became the same as file names are numbered."""
    seen: Counter[str] = Counter()
    apart = []
    for item in items:
        seen[item.name] += 1
        number = seen[item.name]
        apart.append(item if number == 1 else replace(item, name=f"{item.name}.{number}"))
    return apart
