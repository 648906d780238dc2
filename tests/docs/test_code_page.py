"""What the page on code that agents change says of results stands in the table of reports/impact."""

from __future__ import annotations

from pathlib import Path

from impact.tables import HUNK, PARTS, beyond, read, report, sentences, slower

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "reports" / "impact"
ROWS, HUNKS, COSTS, UNFOLLOWED = (read(FOLDER / f"{name}.csv") for name in PARTS)


def test_the_page_says_what_the_rows_say() -> None:
    page = " ".join((ROOT / "docs" / "code.md").read_text(encoding="utf-8").split())
    assert [
        sentence
        for sentence in (*sentences(ROWS), *(sentences(HUNKS, HUNK) if HUNKS else ()), beyond(UNFOLLOWED), slower(COSTS))
        if sentence not in page
    ] == []


def test_the_report_is_made_of_the_rows() -> None:
    assert (FOLDER / "report.md").read_text(encoding="utf-8") == report(ROWS, HUNKS, COSTS, UNFOLLOWED)
