"""The report on what selectors miss: its tables are made of the rows of each mutant."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Sequence
from pathlib import Path

from scipy.stats import binomtest

from impact.decision import REASONS
from impact.figure import draw

Rows = Sequence[dict[str, str]]
SELECTORS = ("bench", "testmon")
REASON_PARTS = ("mutants_reasons", "hunks_reasons", "commits_reasons", "commits_ignoring_reasons")
PARTS = ("mutants", "hunks", "recording", "unfollowed", "commits", "commits_ignoring", *REASON_PARTS)
"""Files of rows that a report is made of, in the order in which `report` is given them."""
HUNK = "hunk"
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
COMMIT_NOTES = (
    "The commits follow one another, and each changes code or one of these tests. After each, what it invalidates ran, and",
    "then all tests, to compare. The tests are those of `tests/analysis`, `tests/report` and `tests/packs`.",
)
METHOD = (
    "Each edit is made to an open package whose suite was recorded. The whole suite then runs, which tells what results the",
    "edit changed. `bench code` and pytest-testmon each run what they select. A changed result is *missed* if its test did not",
    "run. A result is *distorted* if its test ran and came out otherwise than in the full run. A test is *over-run* if it ran",
    "and its result is as before. Where a dash stands for the distorted, `bench code` decided what runs, and nothing was run.",
)
CHANGED, RECORDING, DECIDING = 5_000, 2.2, 0.5
"""The aims: so many changed results, so many times a plain run, so many seconds."""


def limit(count: int, of: int) -> str:
    """A share's upper limit at 95%, exact."""
    if not of:
        return "-"
    return f"{100 * binomtest(count, of).proportion_ci(0.95, 'exact').high:.2f}%"


def write_report(folder: Path) -> None:
    """Make `report.md` and its figure of the rows in a folder."""
    rows, *others = (read(folder / f"{name}.csv") for name in PARTS)
    (folder / "report.md").write_text(report(rows, *others), encoding="utf-8")
    packages = dict.fromkeys(row["package"] for row in rows)
    judged = {selector: [name for name in packages if _of(rows, selector, name)] for selector in SELECTORS}
    shares = {selector: {name: share(rows, selector, name) for name in names} for selector, names in judged.items()}
    missed = {selector: {name: total(rows, "missed", selector, name) for name in names} for selector, names in judged.items()}
    draw(shares, missed, folder / "selection.png")


def report(rows: Rows, hunks: Rows, costs: Rows, unfollowed: Rows, commits: Rows, ignoring: Rows, *reasons: Rows) -> str:
    """The report's text. Of hunks, commits and the costs of recording it says nothing where they were not measured."""
    head = (
        "# What selective re-execution misses",
        "",
        *METHOD,
        "",
        *(
            f"- {each}"
            for each in (
                *sentences(rows),
                *(sentences(hunks, HUNK) if hunks else ()),
                beyond(unfollowed),
                *([slower(costs)] if costs else ()),
            )
        ),
        "",
    )
    figure = ("![Tests run after a mutant, and changed results missed, by package and selector](selection.png)", "")
    notes = (
        "Times are processor seconds of a shared machine.",
        "",
    )
    kinds = ("## What a selector by code coverage does not follow", "", *unfollowed_table(unfollowed), "")
    recorded = ("## Recording the unchanged suite", "", *recording(costs), "")
    ours: tuple[str, ...] = (
        ("## Commits of this repository", "", *COMMIT_NOTES, "", *commits_table(commits), "") if commits else ()
    )
    if ignoring:
        ours = (*ours, of_ignoring(ignoring), "", *commits_table(ignoring), "")
    aimed = ("## Aims", "", *aims(rows, hunks, costs, unfollowed), "")
    real = ("## By release", "", *table(hunks, HUNK), "") if hunks else ()
    why = ("## Why tests ran", "", "Numbers of tests that `bench code` ran, over all edits.", "", *reasons_table(*reasons), "")
    return "\n".join(
        (*head, *figure, *aimed, "## By package", "", *notes, *table(rows), "", *real, *why, *kinds, *recorded, *ours)
    )


def share(rows: Rows, selector: str, package: str | None = None) -> float:
    """The share of tests that a selector ran, in percent."""
    return 100 * total(rows, "run", selector, package) / max(1, total(rows, "tests", selector, package))


def read(path: Path) -> Rows:
    """The rows of a file; none where it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Rows) -> None:
    """Write rows to a file, with the names of their columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0] if rows else (), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def total(rows: Rows, key: str, selector: str, package: str | None = None) -> int:
    """The sum of a column over a selector's rows."""
    return sum(int(row[key] or 0) for row in _of(rows, selector, package))


def _of(rows: Rows, selector: str, package: str | None = None) -> Rows:
    return [row for row in rows if row["selector"] == selector and (package is None or row["package"] == package)]


def sentences(rows: Rows, edit: str = "mutant") -> list[str]:
    """What came out, in words; an edit is a mutant, or a hunk between a release and the next."""
    edits = sum(row["selector"] == "bench" for row in rows)
    packages = len({row["package"] for row in rows})
    of = f"{packages} open packages" if edit == "mutant" else f"the step from {packages} releases to the next"
    lines = [f"{edits} {edit}s of {of} changed {total(rows, 'changed', 'bench'):,} results of tests."]
    if widest := sum(row["choice"] == "widest" for row in rows if row["selector"] == "bench"):
        lines.append(
            f"{edits - widest} of them were taken as drawn; at most half of these change no result. {widest} were taken because"
            " they change the most results of the others, though at most half of a suite's."
        )
    for selector, word in (("bench", "`bench code`"), ("testmon", "pytest-testmon")):
        missed, changed, judged = total(rows, "missed", selector), total(rows, "changed", selector), _of(rows, selector)
        struck = sum(int(row["missed"]) > 0 for row in judged)
        lines.append(
            f"{word} missed {missed:,} of {changed:,} changed results, in {struck} of {len(judged)} {edit}s (at most "
            f"{limit(struck, len(judged))} at 95%), and ran {share(rows, selector):.1f}% of the tests."
        )
    return lines


def results(rows: Rows, hunks: Rows, costs: Rows, unfollowed: Rows, commits: Rows) -> list[str]:
    """What came out of all measurements, in five sentences."""
    every = [*rows, *hunks]
    (ours, changed), (theirs, beside) = [[total(every, key, name) for key in ("missed", "changed")] for name in SELECTORS]
    edits = len(_of(every, "bench"))
    struck = sum(int(row["missed"]) > 0 for row in _of(every, "bench"))
    fair = where_testmon_missed_nothing(every)
    least = 100 * changed / max(1, total(every, "tests", "bench"))
    return [
        of_commits(commits),
        f"{edits} edits of open packages changed {changed:,} results of tests. `bench code` missed {ours} of them, in {struck} "
        f"of the edits (at most {limit(struck, edits)} at 95%). pytest-testmon missed {theirs:,} of {beside:,}.",
        f"`bench code` ran {share(every, 'bench'):.1f}% of the tests; {least:.1f}% of all tests changed their result. Over the "
        f"{len(fair) // 2} edits of which pytest-testmon missed nothing, `bench code` ran {share(fair, 'bench'):.1f}% and "
        f"pytest-testmon {share(fair, 'testmon'):.1f}%.",
        beyond(unfollowed),
        slower(costs),
    ]


def of_commits(commits: Rows) -> str:
    """What came out of the commits of this repository, in words."""
    tests, changed, run, missed = (sum(int(row[key]) for row in commits) for key in ("tests", "changed", "run", "missed"))
    seconds, whole = (sum(float(row[key]) for row in commits) for key in ("seconds", "whole"))
    return (
        f"Over {len(commits)} commits of this repository, {tests:,} results of tests were compared. Of these, {changed} "
        f"changed or came new, and `bench code` missed {missed}. It ran {run:,} tests, which took {seconds:,.0f} seconds of "
        f"the processor; all tests took {whole:,.0f}."
    )


def of_ignoring(commits: Rows) -> str:
    """What came out of the same commits where the clock and chance are ignored, in words."""
    run, missed = (sum(int(row[key]) for row in commits) for key in ("run", "missed"))
    seconds, whole = (sum(float(row[key]) for row in commits) for key in ("seconds", "whole"))
    saved = sum(float(row["seconds"]) < float(row["whole"]) for row in commits)
    return (
        f"With `bench_impact_ignores = clock chance`, {run:,} tests ran after the same commits, and {missed} results were "
        f"missed. They took {seconds:,.0f} seconds, and all tests took {whole:,.0f}. After {saved} of {len(commits)} commits "
        "time was saved."
    )


def commits_table(commits: Rows) -> list[str]:
    """A row for each commit of this repository."""
    return [line([*COMMITS.values()]), line(["---"] * len(COMMITS)), *(line([*row.values()]) for row in commits)]


def beyond(unfollowed: Rows) -> str:
    """What was missed of what a selector by code coverage does not follow, in words."""
    counts = [[total(unfollowed, key, selector) for key in ("missed", "changed")] for selector in SELECTORS]
    (ours, changed), (theirs, _) = counts
    return (
        f"A data file, an absent file, a variable, the order of tests or a dynamic import changed the results of {changed} "
        f"generated tests. `bench code` missed {ours} of them (at most {limit(ours, changed)} at 95%), and pytest-testmon "
        f"{theirs}."
    )


def aims(rows: Rows, hunks: Rows, costs: Rows, unfollowed: Rows) -> list[str]:
    """Each aim of the measurement beside what was measured."""
    missed, changed = (total([*rows, *hunks], key, "bench") for key in ("missed", "changed"))
    ours, theirs = (share(where_testmon_missed_nothing([*rows, *hunks]), selector) for selector in SELECTORS)
    ratios = [float(row["bench"]) / float(row["plain"]) for row in costs]
    beyond = [total(unfollowed, key, "bench") for key in ("missed", "changed")]
    measured: tuple[tuple[str, str, bool], ...] = (
        ("no result missed of 5,000 that changed", f"{missed} of {changed:,}", not missed and changed >= CHANGED),
        ("no result missed of 200 generated tests", f"{beyond[0]} of {beyond[1]}", not beyond[0]),
        (
            "no more tests run than by pytest-testmon, where that missed none",
            f"{ours:.1f}% and {theirs:.1f}% of the tests",
            ours <= theirs,
        ),
    )
    if costs:
        longest = max(float(row["deciding"]) for row in costs)
        times = f"{min(ratios):.2f} to {max(ratios):.2f} times"
        measured += (
            ("recording at most 2.2 times a plain run", times, max(ratios) <= RECORDING),
            ("deciding in at most 0.5 s", f"at most {longest:.2f} s", longest <= DECIDING),
        )
    cells = [(aim, value, "met" if met else "not met") for aim, value, met in measured]
    return [line(("Aim", "Measured", "")), line(["---"] * 3), *map(line, cells)]


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


def needless(*parts: Rows) -> str:
    """Why tests ran that came out the same, in words."""
    counts = {key: sum(int(row[key]) for row in itertools.chain(*parts)) for key in REASONS if key != "changed"}
    of = {key: f"{100 * count / max(1, sum(counts.values())):.0f}%" for key, count in counts.items()}
    return (
        f"Of the {sum(counts.values()):,} tests that ran and came out the same, {of['skeletons']} relied on a skeleton that "
        f"changed, {of['bodies']} ran a body that changed, {of['reads']} read a file or a variable that changed, and "
        f"{of['volatile']} are never kept."
    )


def where_testmon_missed_nothing(rows: Rows) -> Rows:
    """The rows of both selectors for the edits of which pytest-testmon missed nothing."""
    pairs = [pair for pair in itertools.pairwise(rows) if tuple(row["selector"] for row in pair) == SELECTORS]
    return [row for ours, theirs in pairs if int(theirs["missed"]) == 0 for row in (ours, theirs)]


def unfollowed_table(unfollowed: Rows) -> list[str]:
    """A row for each kind of dependence and selector."""
    title = ("Dependence", "Selector", "Changed", "Missed", "Over-run")
    cells = [[row[key] for key in ("kind", "selector", "changed", "missed", "over_run")] for row in unfollowed]
    return [line(title), line(["---"] * len(title)), *map(line, cells)]


def slower(costs: Rows) -> str:
    """What recording costs, in words."""
    ratios = [float(row["bench"]) / float(row["plain"]) for row in costs]
    longest = max(float(row["deciding"]) for row in costs)
    return (
        f"Recording took {min(ratios):.2f} to {max(ratios):.2f} times the processor seconds of a plain run in {len(costs)} "
        f"packages. Deciding what an edit invalidates took at most {longest:.2f} seconds."
    )


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
            judged = _of(rows, selector, package)
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
