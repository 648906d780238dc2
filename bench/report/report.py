"""Writes a run's report: `report.md`, `report.html`, `tables/` and `figures/`, from the run's frames; its events and texts are
for the page's trace explorer alone.

The same results give the same bytes, wherever and whenever they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from bench.analysis.arms import arms_of, require_receipts
from bench.analysis.claims.published import Published, load_published
from bench.analysis.claims.verdicts import Judgement
from bench.analysis.frames import Run
from bench.errors import ResultsError
from bench.render.drawing import Picture
from bench.render.latex import latex, latex_document
from bench.render.table import Table, comma_separated, markdown
from bench.report.figures import all_figures
from bench.report.page import as_markdown, page_of
from bench.report.page_html import as_html
from bench.report.tables import all_tables
from bench.report.trace import trace_of

Named = TypeVar("Named", Table, Picture)


def write_report(
    run: Run, out: Path, published: Published | None = None, judgements: Sequence[Judgement] | None = None
) -> list[Path]:
    """Write the report into folder `out` and return its files, the pages first.

    `published` are the figures to stand beside ours; the repository's own if not given. `judgements`: the verdicts on its
    claims, where they are known already. Raises ResultsError where a fault did
    not arrive, so that no number may be reported, or where a file cannot be written.
    """
    require_receipts(run)
    files = contents_of(run, published or load_published(), judgements)
    # The pages are written last: where they are, all that they name is there.
    for name in reversed(files):
        _write(out / name, files[name])
    return [out / name for name in files]


def contents_of(run: Run, published: Published, judgements: Sequence[Judgement] | None = None) -> dict[str, bytes]:
    """The files of the report, by their paths in its folder. Raises ResultsError where the run cannot be read again."""
    arms = arms_of(run)
    tables = _named_apart(all_tables(run, arms, published, judgements))
    pictures = _named_apart(all_figures(run, arms, published))
    page = page_of(run, tables, pictures)
    texts: Mapping[str, str] = {
        "report.md": as_markdown(page),
        "report.html": as_html(page, trace_of(run)),
        **{f"tables/{table.name}.md": markdown(table) for table in tables},
        **{f"tables/{table.name}.tex": latex(table) for table in tables},
        **{f"tables/{table.name}.csv": comma_separated(table) for table in tables},
        "tables/all.tex": latex_document(page.title, page.warnings, tables),
    }
    return {
        **{name: text.encode() for name, text in texts.items()},
        **{f"figures/{picture.name}.png": picture.png for picture in pictures},
        **{f"figures/{picture.name}.svg": picture.svg for picture in pictures},
    }


def _named_apart(items: Iterable[Named]) -> list[Named]:
    """Names that became the same as file names are numbered."""
    seen: Counter[str] = Counter()
    apart = []
    for item in items:
        seen[item.name] += 1
        number = seen[item.name]
        apart.append(item if number == 1 else replace(item, name=f"{item.name}.{number}"))
    return apart


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: under another name first."""
    half = path.with_name(f".{path.name}.half")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(content)
        half.replace(path)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
