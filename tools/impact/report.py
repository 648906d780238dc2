"""The report on what selectors miss."""

from __future__ import annotations

from pathlib import Path

from impact.figure import draw
from impact.rows import REASON_PARTS, SELECTORS, Parts, edits_in, of_selector, parts_in, share, total
from impact.sentences import beyond, of_ignoring, of_programs, sentences, slower
from impact.tables import aims, commits_table, reasons_table, recording, table, unfollowed_table

HUNK = "hunk"
COMMIT_NOTES = (
    "The commits follow one another, and each changes code or one of these tests. After each, what it invalidates ran, and",
    "then all tests, to compare. The tests are those of `tests/analysis`, `tests/report` and `tests/packs`.",
)
METHOD = (
    "Each edit is made to an open package whose suite was recorded. The whole suite then runs, which tells what results the",
    "edit changed. `bench code` and pytest-testmon each run what they select. A changed result is *missed* if its test did not",
    "run. A result is *distorted* if its test ran and came out otherwise than in the full run. A test is *over-run* if it ran",
    "and its result is as before.",
)
DECIDED = "Where a dash stands for the distorted, `bench code` decided what runs, and nothing was run."


def write_report(folder: Path) -> None:
    """Make `report.md` and its figure of the rows in a folder."""
    parts = parts_in(folder)
    (folder / "report.md").write_text(report(parts), encoding="utf-8")
    rows = parts["mutants"]
    packages = dict.fromkeys(row["package"] for row in rows)
    judged = {selector: [name for name in packages if of_selector(rows, selector, name)] for selector in SELECTORS}
    shares = {selector: {name: share(rows, selector, name) for name in names} for selector, names in judged.items()}
    missed = {selector: {name: total(rows, "missed", selector, name) for name in names} for selector, names in judged.items()}
    draw(shares, missed, folder / "selection.png")


def report(parts: Parts) -> str:
    """The report's text. It says nothing of hunks, commits, programs and the costs of recording that were not measured."""
    rows, hunks, costs, programs = (parts[name] for name in ("mutants", "hunks", "recording", "programs"))
    commits, ignoring, unfollowed = (parts[name] for name in ("commits", "commits_ignoring", "unfollowed"))
    findings = [*sentences(rows), *(sentences(hunks, HUNK) if hunks else ()), beyond(unfollowed)]
    findings += [of_programs(programs)] if programs else []
    findings += [slower(costs)] if costs else []
    decided = [DECIDED] if any(not row["seconds"] for row in edits_in(parts)) else []
    lines = ["# What selective re-execution misses", "", *METHOD, *decided, "", *(f"- {each}" for each in findings), ""]
    lines += ["![Tests run after a mutant, and changed results missed, by package and selector](selection.png)", ""]
    lines += ["## Aims", "", *aims(parts), ""]
    lines += ["## By package", "", "Times are processor seconds of a shared machine.", "", *table(rows), ""]
    lines += ["## By release", "", *table(hunks, HUNK), ""] if hunks else []
    lines += ["## Why tests ran", "", "Numbers of tests that `bench code` ran, over all edits.", ""]
    lines += [*reasons_table(*(parts[name] for name in REASON_PARTS)), ""]
    lines += ["## What a selector by code coverage does not follow", "", *unfollowed_table(unfollowed), ""]
    lines += ["## Recording the unchanged suite", "", *recording(costs), ""]
    lines += ["## Commits of this repository", "", *COMMIT_NOTES, "", *commits_table(commits), ""] if commits else []
    lines += [of_ignoring(ignoring), "", *commits_table(ignoring), ""] if ignoring else []
    return "\n".join(lines)
