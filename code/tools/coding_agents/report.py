"""`python -m coding_agents.report`: the report of the rows in reports/coding_agents/retesting.csv."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from bench.read.analysis.statistics.intervals import Mean
from bench.read.analysis.statistics.paired import paired_difference
from impact.rows import Rows, read

FOLDER = Path("reports/coding_agents")
AMOUNTS = {
    "calls": "calls",
    "read": "tokens read",
    "written": "tokens written",
    "tests": "runs of tests",
    "processor": "processor seconds of its tests",
    "seconds": "seconds of its tests",
}
"""What is told as a mean, and what it is called."""
ARMS = {
    "all": "all tests",
    "selection": "the selection",
    "failing": "the failing test",
    "both": "the failing test and then all",
}
LATER = "both"
"""The arm that ran later than the others in most tasks, so that its seconds are not compared."""
KINDS = ("real repositories", "instances of `repairs`")
METHOD = """mini-swe-agent 2.4.6 repairs a repository that has a bug. It is told which test fails, and by which command it runs
its tests: all tests, the selection of `bench code run`, the failing test, or the failing test and, if it passes, all. A *wrong
belief* is a tree that it handed in because its command had passed on it, and on which a full run fails.

In *real repositories* a bug is a drawn mutant of an open package that makes ten tests fail at most. In every second of these
tasks the first patch *slips*: it mends the bug, and breaks another drawn line of the same file, which a test notices. An
*instance of `repairs`* is generated, and has one to three bugs. The *scripted* model knows the patches, and makes one after
the other until its command passes, so it says nothing about a real model. All tests were recorded before the bug came in,
which only the last table counts. Seconds are of one core of a busy machine, each taken once. The failing test and then all
ran later in most tasks, so its seconds are not compared. A real model has six calls a run. Differences are paired by task,
with intervals at 95%. They do not count that tasks of the same repository are like each other."""


def main() -> None:
    """Write the report."""
    (FOLDER / "retesting.md").write_text(report(read(FOLDER / "retesting.csv")), encoding="utf-8")


def report(rows: Rows) -> str:
    """Return the report's text."""
    lines = ["# A coding agent and its tests", "", METHOD, ""]
    for model in dict.fromkeys(row["model"] for row in rows):
        for kind in KINDS:
            if part := of_kind(rows, model, kind):
                facts = [f"- {line}" for line in results(part) if " minus " not in line]
                lines += [f"## The {model} model in {kind}", "", *facts, "", *_means(part), ""]
    return "\n".join([*lines, "## By repository", "", *_by_repository(of_kind(rows, "scripted", KINDS[0])), ""])


def of_kind(rows: Rows, model: str, kind: str) -> Rows:
    """Return the rows of a model in repositories of a kind."""
    return [row for row in rows if row["model"] == model and _kind(row) == kind]


def results(rows: Rows) -> list[str]:
    """Return what came out for a model in repositories of a kind, in sentences."""
    tasks, slips = ({row["task"] for row in rows if int(row["slips"]) >= least} for least in (0, 1))
    first = f"Tasks of the {rows[0]['model']} model in {_kind(rows[0])}: {len(tasks)}. The agent repaired "
    believed = "Wrong beliefs among what it handed in because its command had passed: "
    lines = [
        first + _by_arm(rows, lambda arm: f"{_sum(rows, arm, 'right')}") + ".",
        believed + _by_arm(rows, lambda arm: f"{_sum(rows, arm, 'wrong')} of {_sum(rows, arm, 'believed')}") + ".",
    ]
    if slips:
        slipped = [row for row in rows if row["task"] in slips]
        handed_in = _by_arm(slipped, lambda arm: f"{_sum(slipped, arm, 'wrong')}")
        lines.append(f"In {len(slips)} tasks the first patch slips. Slips that it handed in: {handed_in}.")
    if idle := sum(row["checks"] == "0" for row in rows):
        calls = sum(int(row["calls"]) for row in rows)
        lines.append(f"In {idle} of {len(rows)} runs, of {calls} calls in all, it never ran its command.")
    asked = {"selection": ("tests", "processor", "seconds", "read"), LATER: ("tests", "read")}
    pairs = [(arm, key) for arm, keys in asked.items() if difference(rows, "calls", arm).n > 1 for key in keys]
    return lines + [_compared(rows, key, arm) for arm, key in pairs]


def _by_arm(rows: Rows, text: Callable[[str], str]) -> str:
    arms = {row["arm"] for row in rows}
    return ", ".join(f"{text(arm)} with {words}" for arm, words in ARMS.items() if arm in arms)


def difference(rows: Rows, key: str, arm: str) -> Mean:
    """Return what an arm took more than all tests did, paired by task."""
    ours, alls = ({(row["task"], 0): float(row[key]) for row in rows if row["arm"] == each} for each in (arm, "all"))
    return paired_difference(ours, alls).difference


def _compared(rows: Rows, key: str, arm: str) -> str:
    mean, verdict = difference(rows, key, arm), "Not told apart"
    if mean.low is not None and mean.high is not None and mean.low * mean.high > 0:
        verdict = "Better" if mean.high < 0 else "Worse"
    return f"{verdict}: {AMOUNTS[key]} a task, {ARMS[arm]} minus all tests: {_text(mean)}."


def _means(rows: Rows) -> list[str]:
    lines = _header("", "tasks", *AMOUNTS.values())
    parts = {arm: of for arm in ARMS if (of := [row for row in rows if row["arm"] == arm])}
    for arm, of in parts.items():
        means = (f"{_sum(of, arm, key) / len(of):,.1f}" if key in _compared_of(arm) else "-" for key in AMOUNTS)
        lines.append(_line(ARMS[arm], str(len(of)), *means))
    for arm in [arm for arm in parts if arm != "all"]:
        count = difference(rows, "calls", arm).n
        cells = (_text(difference(rows, key, arm)) if key in _compared_of(arm) else "-" for key in AMOUNTS)
        lines.append(_line(f"{ARMS[arm]} minus all tests", str(count), *cells))
    return lines


def _compared_of(arm: str) -> Collection[str]:
    return AMOUNTS.keys() - ({"processor", "seconds"} if arm == LATER else set())


def _by_repository(rows: Rows) -> list[str]:
    """Sums of the tasks of each repository, and what recording took once."""
    parts = [("tests", "all"), ("tests", "selection"), ("processor", "all"), ("processor", "selection")]
    lines = _header("repository", "tasks", *(f"{AMOUNTS[key]}, {ARMS[arm]}" for key, arm in parts), "seconds of recording")
    for name in dict.fromkeys(row["task"].partition("/")[0] for row in rows):
        of = [row for row in rows if row["task"].startswith(f"{name}/")]
        sums = [f"{_sum(of, arm, key):,.0f}" for key, arm in parts]
        count = sum(row["arm"] == "all" for row in of)
        lines.append(_line(name, str(count), *sums, f"{_sum(of, 'selection', 'recording'):.1f}"))
    return lines


def _kind(row: dict[str, str]) -> str:
    return KINDS[row["task"].startswith("repairs/")]


def _sum(rows: Rows, arm: str, key: str) -> float:
    total = sum((float(row[key]) for row in rows if row["arm"] == arm), 0.0)
    return int(total) if total.is_integer() else total


def _text(mean: Mean) -> str:
    if mean.mean is None or mean.low is None or mean.high is None:
        return "-" if mean.mean is None else f"{mean.mean:,.1f}"
    digits = 0 if max(abs(mean.low), abs(mean.high)) >= 100 else 1
    return f"{mean.mean:,.{digits}f} [{mean.low:,.{digits}f}, {mean.high:,.{digits}f}]"


def _header(*names: str) -> list[str]:
    return [_line(*names), _line(*("---",) * len(names))]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
