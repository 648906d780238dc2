"""Where a pack has several instances it is told which architecture solves more of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from records import recovered, run_of, smooth, trial

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.read.render.cells import text_of
from bench.read.render.table import Table
from bench.read.report.summary import summary_of
from bench.read.tables.difference_tables import solved_differences
from bench.record.record import Outcome, TrialRecord

SOLVES: Mapping[str, str] = {"static": "abc", "mine": "abcdefgh", "other": "hgfed"}
"""Architecture -> the instances that it solves, of eight."""


def records(solves: Mapping[str, str] = SOLVES, instances: str = "abcdefgh", repetitions: int = 1) -> list[TrialRecord]:
    result = []
    for name, solved in solves.items():
        for instance in instances:
            for repetition in range(1, repetitions + 1):
                outcome: Outcome = "solved" if instance in solved else "wrong"
                place = f"{name}-{instance}-{repetition}"
                result.append(trial(name, "none", repetition, outcome, smooth(), instance=instance, id=place))
    return result


def rows(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.columns, map(text_of, row), strict=True)) for row in table.rows]


def compared(run: Run) -> list[dict[str, str]]:
    [table] = solved_differences(run, arms_of(run))
    return rows(table)


def test_each_two_architectures_are_compared_by_what_one_alone_solved_with_a_correction_over_all(tmp_path: Path) -> None:
    first, second, third = compared(run_of(tmp_path / "run", records()))
    assert [first[name] for name in ("A", "B", "Instances", "Pairs")] == ["static", "mine", "8", "8"]
    cells = ("Solved by both", "By A alone", "By B alone", "By neither")
    assert [[each[name] for name in cells] for each in (first, second, third)] == [
        ["3", "0", "5", "0"],
        ["0", "3", "5", "0"],
        ["5", "3", "0", "0"],
    ]
    assert (first["p"], first["p, Holm"], second["p"]) == ("0.062", "0.188 (floor)", "0.727")
    assert first["Instances that decide 10 points"].split(" ")[0] == "489"


def test_repetitions_of_a_task_are_no_further_tasks(tmp_path: Path) -> None:
    once, often = (compared(run_of(tmp_path / str(count), records(repetitions=count)))[0] for count in (1, 4))
    assert (often["Instances"], often["Pairs"]) == ("8", "32")
    assert often["p"] == once["p"]
    assert often["Instances that decide 10 points"] == once["Instances that decide 10 points"]


def test_of_a_sole_task_no_table_is_shown(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", records(instances="a", repetitions=8))
    assert solved_differences(run, arms_of(run)) == []


def test_of_packs_with_one_task_and_with_several_it_is_said_of_which_tasks_the_intervals_speak(tmp_path: Path) -> None:
    sole = [
        trial("static", "paper", number, "solved", recovered(), scenario="alone", id=f"alone-{number}") for number in (1, 2)
    ]
    run = run_of(tmp_path / "run", [*records(), *sole])
    assert (
        "Other tasks: with one task (alone), intervals hold for repetitions of that task alone; with several (demo), they "
        "cluster by instance and hold for tasks like these; with these models."
    ) in summary_of(run, arms_of(run)).limits
