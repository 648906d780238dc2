"""The page on boundaries says what its tables hold."""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "boundaries.md"
INCLUDED = re.compile(r"\{include\} \.\./\.\./(reports/\S+/report\.md)\n:start-after: (.*)\n:end-before: (.*)\n")
"""A table that the page includes of a report: its file, the line before it and the line behind it."""
INTERVAL = re.compile(r"(-?\d+\.\d{2,3}) \[(-?\d+\.\d{2,3}), (-?\d+\.\d{2,3})\]")


def test_each_number_with_an_interval_stands_in_a_table_of_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    known = {
        tuple(f"{float(row[f'{column}{end}']):.{digits}f}" for end in ("", " low", " high"))
        for digits in (2, 3)
        for name in re.findall(r"reports/boundary_studies/(tables/[\w-]+)\.md", page)
        for row in csv.DictReader(
            (ROOT / "reports" / "boundary_studies" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        )
        for column in row
        if row.get(f"{column} low")
    }
    for report, before, behind in INCLUDED.findall(page):
        table = (ROOT / report).read_text(encoding="utf-8").split(before)[1].split(behind)[0]
        known.update(INTERVAL.findall(table))
    intervals = INTERVAL.findall(" ".join(page.split()))
    assert len(intervals) >= 10
    assert not [numbers for numbers in intervals if numbers not in known]


def test_every_figure_of_the_page_is_there() -> None:
    for figure in re.findall(r"\]\((\S+\.png)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / figure).is_file()


def test_the_hazards_that_the_page_counts_are_those_of_the_table() -> None:
    table = ROOT / "reports" / "boundary_studies" / "tables" / "study-momentum-hazard.csv"
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    hazards = {row["Architecture"]: f"{row['Onsets']} of {row['Effects at risk']} (`{row['Architecture']}`)" for row in rows}
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert hazards["bare_agent"] in page and hazards["state_machine"] in page


def test_the_states_of_the_paraphrase_are_those_of_its_table() -> None:
    report = (ROOT / "reports" / "paraphrase-qwen2.5-coder-1.5b-instruct" / "report.md").read_text(encoding="utf-8")
    row = next(line for line in report.splitlines() if line.startswith("| local | none | all |"))
    events, instances = (cell.strip() for cell in row.split("|")[7:9])
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"the same judgments in the same {events} states of {instances} customers" in page
