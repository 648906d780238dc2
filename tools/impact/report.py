"""The report on what selectors miss and cost."""

from __future__ import annotations

from pathlib import Path

from impact.rows import Parts, parts_in
from impact.sentences import decided, results
from impact.tables import by_kind, by_package, lost, times, unfollowed_table

METHOD = (
    "Each edit is made to an open package on which `bench code` was not developed, and whose suite was recorded by a single",
    "`bench code run`. All tests then run in full, which tells what results the edit changed. A changed result is *missed* if",
    "its test is not among those that run; an edit that has one is *lost*. For this `bench code` may not run all tests",
    "unrecorded where that is cheaper, since it then misses nothing. Tests that come out otherwise in two plain runs, or while",
    "they are recorded, are left out.",
)
TIMES = (
    "Processor seconds of a shared machine, taken in turns with all tests; the least of so many rounds as a row names.",
    "`bench code` may run all tests unrecorded here.",
)


def write_report(folder: Path) -> None:
    """Make `report.md` of the rows in a folder."""
    (folder / "report.md").write_text(report(parts_in(folder)), encoding="utf-8")


def report(parts: Parts) -> str:
    """The report's text."""
    edits = parts["edits"]
    lines = ["# What `bench code` misses, and what it costs", "", *METHOD, "", decided(edits), ""]
    lines += [*(f"- {each}" for each in results(parts)), ""]
    lines += ["## By package", "", *by_package(edits, parts["suites"]), ""]
    lines += ["## By kind of edit", "", *by_kind(edits), ""]
    lines += ["## Edits that lost a result", "", *(lost(edits) or ["None."]), ""]
    lines += ["## Times", "", *TIMES, "", *times(parts["times"]), ""] if parts["times"] else []
    table = unfollowed_table(parts["unfollowed"])
    lines += ["## What a selector by code coverage does not follow", "", *table, ""] if parts["unfollowed"] else []
    return "\n".join(lines)
