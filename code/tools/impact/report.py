"""The report on what selectors lose and cost."""

from __future__ import annotations

from pathlib import Path

from impact.rows import Parts, parts_in
from impact.sentences import results
from impact.tables import by_kind, by_package, lost, times

METHOD = (
    "`bench code` was not developed on these packages. Its wheel and pytest-testmon are installed by pip. A first session",
    "records each suite once, in the usual order. Each edit is then made to the tree as that session left it. All tests run",
    "plain, before and after the edit. A user types `bench code run --json` and, in a copy of the tree, `pytest --testmon`.",
    "A result is passed, skipped or failed. It is *lost* if the edit changed it, and after the session the user still has the",
    "earlier result, of a test that ran or of one that did not. Seconds are of the processor of a shared machine.",
)
TIMES = (
    "Wall time on a processor of a shared machine to which the timed process was pinned, taken in turns, the least of so many",
    "rounds as a row names, with bytecode cached. `first` records all tests; after `nothing` no file had changed.",
)


def write_report(folder: Path) -> None:
    """Make `report.md` of the rows in a folder."""
    (folder / "report.md").write_text(report(parts_in(folder)), encoding="utf-8")


def report(parts: Parts) -> str:
    """The report's text."""
    edits = parts["edits"]
    lines = ["# What `bench code` misses, and what it costs", "", *METHOD, ""]
    lines += [*(f"- {each}" for each in results(parts)), ""]
    lines += ["## By package", "", *by_package(edits, parts["suites"]), ""]
    lines += ["## By kind of edit", "", *by_kind(edits), ""]
    lines += ["## Edits that lost a result", "", *lost(edits), ""]
    lines += ["## Times", "", *TIMES, "", *times(parts["times"]), ""] if parts["times"] else []
    return "\n".join(lines)
