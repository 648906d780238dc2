"""The tables of what selectors miss, made of the rows of each edit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from impact.decision import REASONS
from impact.rows import (
    SELECTORS,
    Parts,
    Rows,
    edits_in,
    in_whole_suites,
    of_selector,
    share,
    sums,
    total,
    where_testmon_missed_nothing,
)

COMMITS = {
    "commit": "Commit",
    "tests": "Tests",
    "changed": "New or changed",
    "run": "Run",
    "missed": "Missed",
    "distorted": "Distorted",
    "seconds": "Seconds",
    "whole": "Seconds of all",
}
CHANGED, PROGRAMS, RECORDING, DECIDING = 5_000, 10_000, 2.2, 0.5
"""The aims: so many changed results, so many programs, so many times a plain run, so many seconds."""


def aims(parts: Parts) -> list[str]:
    """Each aim of the measurement beside what was measured."""
    edits, costs = edits_in(parts), parts["recording"]
    missed, changed = (total(edits, key, "bench") for key in ("missed", "changed"))
    ours, theirs = (share(where_testmon_missed_nothing(edits), selector) for selector in SELECTORS)
    ratios = [float(row["bench"]) / float(row["plain"]) for row in costs]
    beyond = [total(parts["unfollowed"], key, "bench") for key in ("missed", "changed")]
    broken = in_whole_suites(edits)
    without = changed - sum(broken)
    measured: tuple[tuple[str, str, bool], ...] = (
        (
            "no result missed of 5,000 that changed",
            f"{missed} of {changed:,}; {without:,} without the {len(broken)} edits that changed every test of a package",
            not missed and without >= CHANGED,
        ),
        ("no result missed of 200 generated tests", f"{beyond[0]} of {beyond[1]}", not beyond[0]),
        (
            "no more tests run than by pytest-testmon, where that missed none",
            f"{ours:.1f}% and {theirs:.1f}% of the tests",
            ours <= theirs,
        ),
    )
    if programs := parts["programs"]:
        count, wrong, results = sums(programs, "programs", "mismatches", "results")
        outcome = f"{wrong} of {results:,} results of {count:,} programs"
        measured += (("no result wrong in 10,000 generated programs", outcome, not wrong and count >= PROGRAMS),)
    if costs:
        longest = max(float(row["deciding"]) for row in costs)
        times = f"{min(ratios):.2f} to {max(ratios):.2f} times"
        measured += (
            ("recording at most 2.2 times a plain run", times, max(ratios) <= RECORDING),
            ("deciding in at most 0.5 s", f"at most {longest:.2f} s", longest <= DECIDING),
        )
    cells = [(aim, value, "met" if met else "not met") for aim, value, met in measured]
    return [line(("Aim", "Measured", "")), line(["---"] * 3), *map(line, cells)]


def commits_table(commits: Rows) -> list[str]:
    """A row for each commit of this repository."""
    return [line([*COMMITS.values()]), line(["---"] * len(COMMITS)), *(line([*row.values()]) for row in commits)]


def reasons_table(*parts: Rows) -> list[str]:
    """A row for each package, of mutants and of hunks: why its tests ran, and the share of changed results in all tests."""
    title = ("Package", "Tests", "Run", *REASONS.values(), "Share changed")
    cells = [
        [
            row["package"],
            *(f"{int(row[key]):,}" for key in ("tests", "run", *REASONS)),
            f"{_percent(row['changed'], row['tests'])}",
        ]
        for row in itertools.chain(*parts)
    ]
    return [line(title), line(["---"] * len(title)), *map(line, cells)]


def unfollowed_table(unfollowed: Rows) -> list[str]:
    """A row for each kind of dependence and selector."""
    title = ("Dependence", "Selector", "Changed", "Missed", "Over-run")
    cells = [[row[key] for key in ("kind", "selector", "changed", "missed", "over_run")] for row in unfollowed]
    return [line(title), line(["---"] * len(title)), *map(line, cells)]


def table(rows: Rows, edit: str = "mutant") -> list[str]:
    """A row for each package and selector."""
    title = (
        "Package",
        "Selector",
        f"{edit.title()}s",
        "Changed",
        "Missed",
        "Distorted",
        "Over-run",
        "Share run",
        "Time / full run",
    )
    lines = [line(title), line(["---"] * len(title))]
    for package in dict.fromkeys(row["package"] for row in rows):
        for selector in SELECTORS:
            judged = of_selector(rows, selector, package)
            if not judged:
                continue
            counts = {key: total(judged, key, selector) for key in ("changed", "missed", "distorted", "over_run")}
            seconds, whole = (sum(float(row[key] or 0) for row in judged) for key in ("seconds", "whole"))
            spent = 100 * seconds / max(0.01, whole)
            ran = all(row["seconds"] for row in judged)  # else it was decided what runs, and none of it was run
            lines.append(
                line(
                    [
                        package,
                        selector,
                        len(judged),
                        *(f"{count:,}" if ran or key != "distorted" else "-" for key, count in counts.items()),
                        f"{share(judged, selector):.1f}%",
                        f"{spent:.0f}%" if ran else "-",
                    ]
                )
            )
    return lines


def recording(costs: Rows) -> list[str]:
    """What recording the unchanged suite costs, in processor seconds."""
    ratios = ("bench / plain", "testmon / plain")
    title = ("Package", "Tests", "Unstable", "Plain, s", "bench, s", "testmon, s", *ratios, "Deciding, s")
    lines = [line(title), line(["---"] * len(title))]
    for row in costs:
        plain, ours, theirs = (float(row[key]) for key in ("plain", "bench", "testmon"))
        numbers = [f"{number:.2f}" for number in (plain, ours, theirs, ours / plain, theirs / plain)]
        lines.append(line([row["package"], row["tests"], row["unstable"], *numbers, row["deciding"]]))
    return lines


def _percent(count: str, of: str) -> str:
    return f"{100 * int(count) / max(1, int(of)):.1f}%"


def line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
