"""No planted loss of the margin passes in more than one pair of runs in twenty, and the page says what the report does."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from gate import CHANGES, Cell, counted

from bench.read.compare.compare import DEFAULT_GATE

ROOT = Path(__file__).parents[2]


def rows() -> list[dict[str, str]]:
    with (ROOT / "reports" / "gate" / "gate.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def shares(planted: str, change: float, arms: int, units: int) -> dict[str, float]:
    [row] = [
        row
        for row in rows()
        if (row["planted"], float(row["change"]), int(row["arms"]), int(row["units"])) == (planted, change, arms, units)
    ]
    words = ("worse", "better", "no worse", "undecided")
    of = sum(int(row[word]) for word in words)
    return {word: int(row[word]) / of for word in words} | {
        f"gate {word}": int(row[f"gate {word}"]) / of for word in (*words, "trade-off")
    }


def passed(row: dict[str, str]) -> float:
    return (int(row["better"]) + int(row["no worse"])) / sum(
        int(row[word]) for word in ("worse", "better", "no worse", "undecided")
    )


def test_no_loss_of_the_margin_passes_in_more_than_one_of_twenty() -> None:
    lost = [row for row in rows() if float(row["change"]) >= DEFAULT_GATE["solved" if row["planted"] == "solved" else "tokens"]]
    assert {row["planted"] for row in lost} == set(CHANGES) and len(lost) == 120
    assert max(map(passed, lost)) == 0.04


@pytest.mark.parametrize(
    "cell", [Cell("solved", 0.5, 1, 10), Cell("each attempt dearer", 0.2, 4, 10)], ids=lambda cell: cell.planted
)
def test_the_counts_come_again(cell: Cell) -> None:
    [row] = [
        row
        for row in rows()
        if (row["planted"], float(row["change"]), int(row["arms"]), int(row["units"]))
        == (cell.planted, cell.change, cell.arms, cell.units)
    ]
    again = counted(cell, 200).findings
    assert {word: int(row[word]) for word in ("worse", "better", "no worse", "undecided") if int(row[word])} == dict(again)


def test_the_page_says_what_the_gate_finds() -> None:
    text = " ".join((ROOT / "docs" / "comparing.md").read_text(encoding="utf-8").split())
    dearer, none = "each attempt dearer", [shares("each attempt dearer", 0.0, arms, 40) for arms in (24, 4, 1)]
    worse = [
        shares(dearer, change, arms, units)["worse"]
        for change, arms, units in ((0.5, 1, 10), (0.5, 4, 10), (0.2, 4, 10), (0.2, 4, 40))
    ]
    assert (
        "With ten tasks a loss of 50% in tokens was found in {:.0%} of pairs of runs with one arm, and in {:.0%} with four "
        "arms. A loss of 20% in tokens was found in {:.0%} of pairs of runs with four arms and ten tasks, and in {:.0%} with "
        "four arms and 40 tasks."
    ).format(*worse) in text
    passing = [each["gate no worse"] + each["gate better"] for each in none]
    assert (
        "passed in {:.0%} of pairs of runs with 24 arms and 40 tasks, in {:.0%} with four arms and 40 tasks, and in no".format(
            *passing[:2]
        )
        in text
        and passing[2] == 0
    )
    healthy = [shares(dearer, 0.0, arms, units) for arms in (1, 4, 24) for units in (5, 10, 20, 40)]
    assert f"At most {max(each['gate worse'] + each['gate trade-off'] for each in healthy):.0%} were called worse" in text
    assert all(shares(dearer, change, 24, 5)["worse"] == 0 for change in CHANGES[dearer]) and "Five decide nothing." in text
