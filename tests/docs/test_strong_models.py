"""What the page on strong models says stands in its report, which holds numbers and no text of others."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/results/strong_models.md").read_text(encoding="utf-8").split())
REPORT = (ROOT / "reports/strong_models/report.md").read_text(encoding="utf-8")


def cells(first: str) -> list[str]:
    """Return the cells of the report's first row that begins so."""
    row = next(line for line in REPORT.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_each_sentence_on_strong_models_says_what_the_report_counts() -> None:
    _, errors, repaired, _, calls, tokens, struck, spared, _ = cells("chance")
    again = re.search(r"The same call succeeded later in (\d+) of (\d+) cases, after ([\d.]+) calls in the mean", REPORT)
    assert again and again[2] == errors
    assert f"Of {errors} reads that got the error, the same call succeeded later in {again[1]}, after {again[3]} calls" in PAGE
    after = f"after {calls.split(',')[0]} call and {tokens.split(',')[0]} tokens in the median"
    assert f"Of these reads {repaired} were followed by a success of the same tool, {after}" in PAGE
    assert f"With an injected error {struck.split(' (')[0]} trials were solved" in PAGE
    assert f"and without it {spared.split(' (')[0]}." in PAGE
    *_, struck, spared, _ = cells("the model")
    assert f"caused {struck.split(' (')[0]} trials were solved, and without it {spared.split(' (')[0]}." in PAGE
    airline = cells("GPT-4o airline, 4 trials a task")
    assert f"**GPT-4o repaired {airline[6]} of {airline[3].split(' (')[0]} errors" in PAGE
    assert f"A repair took {airline[8].split(',')[0]} calls and {airline[9].split(',')[0]} tokens in the median." in PAGE
    rows = [cells(f"{name} airline") for name in ("Sonnet 4.5", "Opus 4.6", "GPT-5.4")]
    (errors, calls), *others = [(row[3].split(" (")[0], row[2]) for row in rows]
    opus, gpt = [f"made {made} in {asked}" for made, asked in others]
    assert f"Sonnet 4.5 made {errors} error in {calls} calls, Opus 4.6 {opus} and GPT-5.4 {gpt}, too few to measure" in PAGE


def test_the_tools_are_as_dangerous_as_the_page_says_and_say_nothing_of_it() -> None:
    danger = REPORT.partition("## The danger of a tool")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in danger.splitlines() if line.startswith("| ")][2:]
    assert all(row[6] == row[3] for row in rows if row[1] == "cancel_reservation")
    assert all(row[6] == "0" for row in rows if "order" in row[1] or row[1] == "modify_user_address")
    assert {row[2] for row in rows} == {"no hint; no word on a second call"}
    assert all(row[10].startswith(("0 of", "– of")) for row in rows)


def test_the_page_says_how_many_files_were_re_executed() -> None:
    section = REPORT.partition("## Re-executed on servers that install")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    words = {10: "Ten", 11: "Eleven", 12: "Twelve", 13: "Thirteen"}
    assert f"{words[len(rows)]} files were re-executed on the servers that install." in PAGE


def test_the_report_says_that_its_trials_were_recorded_elsewhere_and_stays_small() -> None:
    assert "RECORDED ELSEWHERE" in REPORT
    assert len(REPORT) < 60_000
