"""What came out of the edits: sentences, which the page on code that agents change has too, and a table of the packages."""

from __future__ import annotations

import re
from statistics import median

from bench.common.wording import plural
from impact.rows import Rows

ENOUGH = 10
"""In how many packages some results must have been kept, for their number to say something: 0 lost in 10 is at most 26%."""
LONG = 5.0
"""Seconds of the processor from which a suite counts as long."""
NAMES = {"bench": "`bench code`", "testmon": "pytest-testmon"}
KINDS = ("first", "nothing", "body")
COSTS = {
    "first": "the first session",
    "nothing": "a session with nothing changed",
    "body": "a session after a body edit",
    "other": "a session after another edit",
}
"""The kinds of sessions whose cost is told, each in words."""
DAY = {"body": 18, "other": 12}
"""How many edits of each kind a day of thirty has: six of ten are of bodies."""
METHOD = (
    "`bench code` and pytest-testmon are installed from wheels. A first session records each suite. Each edit is then made to",
    "the tree as that session left it: all tests run plain, a user types `bench code run --json` and, in a copy of the tree,",
    "`pytest --testmon`. A result is *lost* if the edit changed it, and after the session the user still has the earlier one.",
    "Seconds are of the processor of a machine that others used at the same time, once each. A ratio is to the plain run after",
    "the same edit. An edit after which no test can be collected counts for losses alone.",
)


def report(rows: Rows) -> str:
    """Return the report's text."""
    lines = ["# What `bench code` misses, and what it costs", "", *METHOD, "", *(f"- {each}" for each in results(rows)), ""]
    titles = ("Package", "Tests", "Plain, s", "Edits", "Changed a result", *(f"{n}: {t}" for n in NAMES.values() for t in TOLD))
    lines += [f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *map(_cells, _by_package(rows)))]
    return "\n".join([*lines, ""])


TOLD = ("lost", "tests run", "first", "nothing changed", "body edits")


def results(rows: Rows) -> list[str]:
    """Return what came out, in sentences."""
    edits = [row for row in rows if kind_of(row) not in ("first", "nothing")]
    long = [package for package in _by_package(rows) if seconds_of(package) >= LONG]
    sentences = [_of_edits(edits), *(_of_losses(_with(edits, name), name) for name in NAMES)] if edits else []
    timed = [row for package in long for row in package if int(row["tests"])]
    sentences += [_of_costs(_with(timed, name), len(long), name) for name in NAMES]
    return [each for each in (*sentences, _of_days(long)) if each]


def _with(rows: Rows, name: str) -> list[dict[str, str]]:
    """Return the rows of what a selector ran beside."""
    return [row for row in rows if row.get(f"{name} s")]


def _of_edits(edits: Rows) -> str:
    kept = [row for row in _changing(edits) if int(row["bench ran"]) < int(row["tests"])]
    judged, packages = plural(len(edits), "edit"), plural(_packages(edits), "package")
    few = f", in {plural(_packages(kept), 'package')}" if kept else ""
    little = " The edits show next to nothing about how often `bench code` loses a result." if _packages(kept) < ENOUGH else ""
    return (
        f"`bench code` was tested with {judged} of {packages}. `bench code` could lose a result after {len(kept)} of these "
        f"edits{few}: after the other edits no result changed, or all tests ran.{little}"
    )


def _changing(edits: Rows) -> Rows:
    return [row for row in edits if int(row["changed"]) and int(row["tests"])]


def _packages(rows: Rows) -> int:
    return len({row["package"] for row in rows})


def _of_losses(edits: Rows, name: str) -> str:
    changing = _changing(edits)
    kept = [row for row in changing if int(row[f"{name} ran"]) < int(row["tests"])]
    lost, packages = sum(int(row[f"{name} lost"]) > 0 for row in changing), _packages(kept)
    wrong = sum(int(row[f"{name} wrong"]) > 0 for row in edits)
    bound = ""
    if packages and not lost:
        bound = f" (in 0 of {plural(packages, 'package')}, so in at most {limit(packages)} of such packages at 95%)"
    return (
        f"{NAMES[name]} lost a result after {lost} of {plural(len(changing), 'edit')} that changed a result, of "
        f"{plural(len(edits), 'edit')} of {plural(_packages(edits), 'package')}. After {len(kept)} of the {len(changing)} "
        f"edits {NAMES[name]} kept some results{bound}. After {wrong} of the {len(edits)} edits a test that ran had another "
        "outcome than in the plain run."
    )


def _of_costs(rows: Rows, count: int, name: str) -> str:
    parts = []
    for kind, what in COSTS.items():
        if ratios := [ratio(row, name) for row in rows if _part_of(row) == kind]:
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}, " if len(ratios) > 1 else ""
            parts.append(f"{what} {median(ratios):.2f} ({spread}{plural(len(ratios), 'session')})")
    suites = f"In the {plural(count, 'suite')} whose tests take {LONG:.0f} seconds or more"
    return f"{suites}, {NAMES[name]} took, as a multiple of the time of all tests: {', '.join(parts)}." if parts else ""


def _of_days(long: list[list[dict[str, str]]]) -> str:
    days = [(package[0]["package"], day_of(package)) for package in long]
    by_suite = ", ".join(f"{day:.2f} in {name}" for name, day in days if day is not None)
    day = f"A day has the first session and thirty edits, {DAY['body']} of them of bodies, each at the mean cost of its kind"
    return f"{day}. It takes, as a multiple of thirty runs of all tests: {by_suite}." if by_suite else ""


def day_of(package: Rows) -> float | None:
    """Return what a day of thirty edits costs, of all tests after each; None if a kind of edit, or the first session, lacks."""
    timed = [row for row in package if int(row["tests"])]
    of = {kind: [ratio(row, "bench") for row in timed if _part_of(row) == kind] for kind in ("first", *DAY)}
    if not all(of.values()):
        return None
    means = {kind: sum(ratios) / len(ratios) for kind, ratios in of.items()}
    return (means["first"] + sum(number * means[kind] for kind, number in DAY.items())) / sum(DAY.values())


def _part_of(row: dict[str, str]) -> str:
    kind = kind_of(row)
    return kind if kind in KINDS else "other"


def ratio(row: dict[str, str], name: str) -> float:
    """Return the processor time of a session, of that of all tests after the same edit."""
    return float(row[f"{name} s"]) / float(row["plain s"])


def seconds_of(package: Rows) -> float:
    """Return the processor seconds of a package's tests: the median of its plain runs, in which all tests ran."""
    return median(float(row["plain s"]) for row in package if kind_of(row) in ("first", "nothing"))


def limit(packages: int) -> str:
    """Return the upper limit at 95% of a share of packages of which none showed something: the rule of three, exactly."""
    return f"{100 * (1 - 0.05 ** (1 / packages)):.0f}%"


def kind_of(row: dict[str, str]) -> str:
    """Return the kind of an edit, with which its description begins after the place."""
    found = re.match(r"(?:.+?:[0-9]+ )?([^:]+):", row["edit"])
    return found[1] if found else ""


def _by_package(rows: Rows) -> list[list[dict[str, str]]]:
    return [[row for row in rows if row["package"] == name] for name in dict.fromkeys(row["package"] for row in rows)]


def _cells(package: Rows) -> list[str]:
    edits = [row for row in package if kind_of(row) not in ("first", "nothing")]
    tests, changed = package[0]["tests"], sum(int(row["changed"]) > 0 for row in edits)
    cells = [package[0]["package"], tests, f"{seconds_of(package):.1f}", str(len(edits)), str(changed) if edits else "-"]
    for name in NAMES:
        judged = _with(edits, name)
        ran = sum(int(row[f"{name} ran"]) for row in judged) / max(1, sum(int(row["tests"]) for row in judged))
        lost = sum(int(row[f"{name} lost"]) > 0 for row in judged)
        cells += [str(lost), f"{ran:.0%}"] if judged else ["-", "-"]
        for kind in KINDS:
            ratios = [ratio(row, name) for row in _with(package, name) if kind_of(row) == kind and int(row["tests"])]
            cells.append(f"{median(ratios):.2f} ({len(ratios)})" if ratios else "-")
    return cells
