"""How often the gate of `bench compare` finds a planted loss, and how often it passes one: `reports/gate`.

python tools/reports/gate.py [PAIRS [FOLDER]]

Each cell draws so many pairs of runs and judges them by the functions that the command judges by. A trial asks up to three
times; an attempt fails with a chance of 5, 10, 20 or 30%, drawn for each pair of runs. Half of the pairs of runs have one task
with N repetitions, half have N tasks of unlike size. All arms of a unit share its size and half of its spread.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from bench.read.compare.compare import DEFAULT_GATE
from bench.read.compare.verdict import (
    ComparisonFinding,
    GatedMeasure,
    compare_amounts,
    compare_rates,
    finding_of,
    verdict_of,
)
from bench.read.render.table import Table, markdown

ROOT = Path(__file__).parents[2]
SEED = 20261129
UNITS, ARMS = (5, 10, 20, 40), (1, 4, 24)
CHANGES = {
    "each attempt dearer": (-0.2, 0.0, 0.05, 0.1, 0.2, 0.5),
    "more attempts": (0.05, 0.1, 0.2, 0.5),
    "solved": (-0.2, 0.0, 0.05, 0.1, 0.2, 0.5),
}
"""What is planted -> by how much: a share of the tokens, or points of what is solved; below 0 it is better."""
FAILING = (0.05, 0.1, 0.2, 0.3)
SOLVED = 0.7
SPREAD, UNLIKE, ATTEMPTS = 0.14, 0.5, 3
Values = np.ndarray


@dataclass(frozen=True)
class Cell:
    planted: str
    change: float
    arms: int
    units: int


@dataclass(frozen=True)
class Counted:
    """How often each finding was made on the measure that the change is planted in, and how often the whole gate said each
    verdict."""

    cell: Cell
    findings: Mapping[str, int]
    verdicts: Mapping[str, int]


def counted(cell: Cell, pairs: int) -> Counted:
    rng = np.random.default_rng([SEED, [*CHANGES].index(cell.planted), round(100 * cell.change) + 100, cell.arms, cell.units])
    findings, verdicts = Counter[str](), Counter[str]()
    for number in range(pairs):
        judged = _judged(rng, cell, unlike=bool(number % 2))
        findings[judged["solved" if cell.planted == "solved" else "tokens"]] += 1
        verdicts[verdict_of(GatedMeasure(finding, name == "solved") for name, finding in judged.items())] += 1
    return Counted(cell, findings, verdicts)


def _judged(rng: np.random.Generator, cell: Cell, unlike: bool) -> dict[str, ComparisonFinding]:
    shape = (cell.units, cell.arms)
    size = np.exp(rng.normal(size=(cell.units, 1)) * UNLIKE - UNLIKE**2 / 2) if unlike else np.ones((cell.units, 1))
    shared = rng.normal(size=(cell.units, 1))
    failing = float(rng.choice(FAILING))
    more = _failing_for(failing, cell.change) if cell.planted == "more attempts" else failing
    dearer = 1 + cell.change if cell.planted == "each attempt dearer" else 1.0
    fewer = cell.change if cell.planted == "solved" else 0.0
    hard = np.clip(rng.beta(7, 3, size=(cell.units, 1)), 0, 1) if unlike else np.full((cell.units, 1), SOLVED)
    solved = [rng.random(shape) < np.clip(hard * (1 - less / SOLVED), 0, 1) for less in (0.0, fewer)]
    judged: dict[str, ComparisonFinding] = {}
    if cell.planted == "solved" or not cell.change:
        rates, _ = compare_rates(_rates(solved[0]), _rates(solved[1]), DEFAULT_GATE["solved"], more_is_good=True)
        judged["solved"] = finding_of(rates, rates.p)
    if cell.planted != "solved":
        tokens = [_tokens(rng, shape, size, shared, chance, by) for chance, by in ((failing, 1.0), (more, dearer))]
        amounts, _ = compare_amounts(_by_pair(tokens[0]), _by_pair(tokens[1]), DEFAULT_GATE["tokens"])
        judged["tokens"] = finding_of(amounts, amounts.p)
    return judged


def _tokens(
    rng: np.random.Generator, shape: tuple[int, int], size: Values, shared: Values, failing: float, dearer: float
) -> Values:
    """Return the tokens of each trial, attempt by attempt."""
    spent, goes_on = np.zeros(shape), np.ones(shape, dtype=bool)
    for _ in range(ATTEMPTS):
        noise = math.sqrt(0.5) * (shared + rng.normal(size=shape))
        spent += goes_on * 1000 * dearer * size * np.exp(SPREAD * noise - SPREAD**2 / 2)
        goes_on &= rng.random(shape) < failing
    return np.asarray(np.rint(spent))


def _failing_for(failing: float, change: float) -> float:
    """Return the chance to fail at which a trial makes so many more attempts in the mean."""
    wanted = (1 + failing + failing**2) * (1 + change)
    return min(1.0, (math.sqrt(4 * wanted - 3) - 1) / 2)


def _by_pair(values: Values) -> dict[tuple[str, int], float]:
    return {(f"{unit}", arm): value for unit, row in enumerate(values.tolist()) for arm, value in enumerate(row)}


def _rates(values: Values) -> dict[tuple[str, int], bool | None]:
    return {pair: bool(value) for pair, value in _by_pair(values).items()}


def table(results: Sequence[Counted], planted: str) -> Table:
    changes = CHANGES[planted]
    unit = " points" if planted == "solved" else "%"
    rows: list[tuple[int | str, ...]] = [
        (arms, units, *(_cell(one) for change in changes for one in results if one.cell == Cell(planted, change, arms, units)))
        for arms, units in product(ARMS, UNITS)
    ]
    titles = [f"{100 * change:+g}{unit}" if change else "none" for change in changes]
    return Table(
        f"gate-{planted}",
        f"Planted: {planted} (SIMULATED)",
        ("Arms", "N", *titles),
        tuple(rows),
        ("in % of pairs of runs: worse / no worse or better / cannot be decided",),
    )


def _cell(one: Counted) -> str:
    of = sum(one.findings.values())
    passed = sum(one.findings.get(name, 0) for name in ("no worse", "better", "equal"))
    shares = (one.findings.get("worse", 0), passed, one.findings.get("undecided", 0))
    return " / ".join(f"{100 * share / of:.0f}" for share in shares)


def healthy(results: Sequence[Counted]) -> Table:
    """Return what the whole gate says of runs in which nothing is planted."""
    rows: list[tuple[int, int, str, str, str]] = []
    for one in results:
        if one.cell.planted == "each attempt dearer" and not one.cell.change:
            of = sum(one.verdicts.values())
            names = (("no worse", "better", "equal"), ("undecided",), ("worse", "trade-off"))
            passed, undecided, worse = (f"{sum(one.verdicts.get(name, 0) for name in each) / of:.0%}" for each in names)
            rows.append((one.cell.arms, one.cell.units, passed, undecided, worse))
    return Table(
        "gate-healthy",
        "Nothing planted: the verdict on solved (5 points) and tokens (10%) together (SIMULATED)",
        ("Arms", "N", "Passed", "Cannot be decided", "Worse or a trade-off"),
        tuple(sorted(rows)),
        (),
    )


def to_csv(results: Sequence[Counted]) -> str:
    words = ("worse", "better", "no worse", "undecided")
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(("planted", "change", "arms", "units", *words, *(f"gate {word}" for word in (*words, "trade-off"))))
    for one in results:
        counts = (
            *(one.findings.get(word, 0) for word in words),
            *(one.verdicts.get(word, 0) for word in (*words, "trade-off")),
        )
        writer.writerow((one.cell.planted, one.cell.change, one.cell.arms, one.cell.units, *counts))
    return written.getvalue()


def passed_at_the_margin(results: Sequence[Counted], planted: str) -> list[tuple[float, Cell]]:
    """Return the share of passed pairs of runs in each cell that loses at least the margin, the largest first."""
    margin = DEFAULT_GATE["solved" if planted == "solved" else "tokens"]
    lost = [one for one in results if one.cell.planted == planted and one.cell.change >= margin]
    shares = [
        (1 - sum(one.findings.get(each, 0) for each in ("worse", "undecided")) / sum(one.findings.values()), one.cell)
        for one in lost
    ]
    return sorted(shares, key=lambda share: -share[0])


def report(results: Sequence[Counted], pairs: int) -> str:
    lines = [
        "# What the gate of `bench compare` finds",
        "",
        f"All numbers here are SIMULATED: {pairs} pairs of runs a cell, with a planted loss or none, judged by the functions "
        "of the command. `python tools/reports/gate.py` makes this page again. [Every count](gate.csv).",
        "",
        "N is the number of tasks, or of repetitions of one task. A trial fails and asks again with a chance of 5 to 30%. A "
        "loss of the margin or more must not pass in more than 5% of pairs of runs:",
        "",
    ]
    for planted in CHANGES:
        shares = passed_at_the_margin(results, planted)
        mean = sum(share for share, _ in shares) / len(shares)
        worst, cell = shares[0]
        lines.append(
            f"- {planted}: it passes in {mean:.1%} in the mean of {len(shares)} cells; at the most in {worst:.1%} (a loss of "
            f"{100 * cell.change:g}{' points' if planted == 'solved' else '%'}, {cell.arms} arms, N = {cell.units})."
        )
    shown = [healthy(results), *(table(results, planted) for planted in CHANGES)]
    return "\n".join([*lines, "", *map(markdown, shown)]).rstrip() + "\n"


def main(pairs: int, folder: Path) -> None:
    cells = [
        Cell(planted, change, arms, units)
        for planted, changes in CHANGES.items()
        for change, arms, units in product(changes, ARMS, UNITS)
    ]
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(counted, cells, [pairs] * len(cells)))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gate.csv").write_text(to_csv(results), encoding="utf-8")
    (folder / "report.md").write_text(report(results, pairs), encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "reports" / "gate")
