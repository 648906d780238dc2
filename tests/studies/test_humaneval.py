"""The study humaneval: every trial stands in one category, every problem that was not solved is named, errors too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from records import called, edit_manifest, rejected, trial, write_run

import bench
from bench.read.analysis.frames import Run
from bench.read.render.drawing import style
from bench.record.events import Event
from bench.record.record import Outcome, TrialRecord
from bench.scenario import Grade
from studies.humaneval.study import CATEGORIES, ELSEWHERE, category_of, pictures, solving, tables

MODEL = "qwen2.5-coder-1.5b-instruct"
Way = tuple[Outcome, str, str]
SOLVED: Way = ("solved", "", "")
WAYS: Mapping[str, Way] = {  # category -> outcome, the grader's note, reason of the last rejection
    "no code": ("wrong", "no function: it defines no function f", ""),
    "syntax": ("wrong", "syntax: SyntaxError: invalid syntax", ""),
    "exception": ("wrong", "exception: IndexError, call 1 of 7", ""),
    "time limit": ("wrong", "time limit: ended by signal 24", ""),
    "wrong value": ("wrong", "wrong value: call 3 of 7", ""),
    "cut off": ("gave_up", "", "cut_off"),
    "refused": ("gave_up", "", "check"),
    "not separable here": ("wrong", "who knows", ""),
}


def trial_of(number: int, outcome: Outcome, note: str = "", reason: str = "", **values: Any) -> TrialRecord:
    name = f"problem_{number:03}"
    events: list[Event] = [called(1, "solution"), *([rejected(1, "solution", reason)] if reason else [])]
    grade = Grade(outcome == "solved", float(outcome == "solved"), {}, note) if outcome in ("solved", "wrong") else None
    given = {"scenario": "humaneval:one_call", "instance": name, "id": name, "model": MODEL, "timing": "live", **values}
    return trial("monolithic", "none", 1, outcome, events, grade=grade, **given)


def run_of(folder: Path, records: list[TrialRecord], kind: str = "openai") -> Run:
    write_run(folder, records)
    edit_manifest(folder, models={MODEL: {"kind": kind}})
    return bench.load_run(folder)


def every() -> list[TrialRecord]:
    """One of each category, a second without code, twenty solved, one error."""
    ways: list[Way] = [*WAYS.values(), ("gave_up", "", "not_json"), *[SOLVED] * 20, ("error", "", "")]
    return [trial_of(number, *way) for number, way in enumerate(ways)]


def test_each_trial_stands_in_one_category_and_all_that_did_not_solve_are_named(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", every())
    [arm] = solving(run)
    assert arm.counts == {"solved": 20, **dict.fromkeys(WAYS, 1), "no code": 2} and {*WAYS, ELSEWHERE} == {*CATEGORIES}
    counted, named = tables(run)
    [row] = counted.texts()
    shown = dict(zip(counted.columns, row, strict=True))
    assert shown["Problems"] == "30" and shown["Errors"] == "1" and shown["Solved"].startswith("20/29 = 69.0%")
    assert shown["Published"] == "70.7% of all 164"
    listed = " ".join(row[-1] for row in named.texts())
    assert all(f"problem_{number:03}" in listed for number in (*range(9), 29)) and "problem_010" not in listed
    with style():
        assert [picture.name for picture in pictures(run)] == ["study-humaneval-qwen2.5-coder-1.5b-instruct"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [("simulated", {"timing": "simulated"}), ("openai", {"scenario": "humaneval"}), ("openai", {"plan": "paper"})],
    ids=["simulated", "pipeline", "faults"],
)
def test_the_published_share_stands_beside_a_real_model_in_one_call_without_faults_alone(
    kind: str, values: Mapping[str, Any], tmp_path: Path
) -> None:
    plan = str(values.get("plan", "none"))
    given = {name: value for name, value in values.items() if name != "plan"}
    records = [
        trial("monolithic", plan, 1, "solved", [called(1)], **{"scenario": "humaneval:one_call", "model": MODEL, **given})
    ]
    counted, *_ = tables(run_of(tmp_path / "run", records, kind))
    assert dict(zip(counted.columns, counted.texts()[0], strict=True))["Published"] == "–"


def test_a_share_of_the_same_fixed_problems_is_compared_by_how_many_differ_and_not_by_an_interval(tmp_path: Path) -> None:
    records = [trial_of(number, *(SOLVED if number < 106 else ("wrong", "syntax: x"))) for number in range(164)]
    counted, _ = tables(run_of(tmp_path / "run", records))
    published = dict(zip(counted.columns, counted.texts()[0], strict=True))["Published"]
    assert published == "70.7%, 116 of the same 164: at least 10 differ"


@pytest.mark.parametrize("category", WAYS)
def test_a_category_is_told_by_outcome_note_and_last_rejection(category: str) -> None:
    outcome, note, reason = WAYS[category]
    kinds = {"check": "content"}
    assert category_of(outcome, note, "code", kinds.get(reason, reason)) == category


@pytest.mark.parametrize(("subtask", "category"), [("plan", ELSEWHERE), ("review", ELSEWHERE), ("final", "no code")])
def test_a_trial_that_gave_up_on_an_output_of_words_says_nothing_of_its_code(
    subtask: str, category: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"scenario": "humaneval", "model": MODEL, "timing": "live"}
    events: list[Event] = [called(1, subtask), rejected(1, subtask, "not_json")]
    ended = trial("static", "none", 1, "gave_up", events, **given)
    [arm] = solving(run_of(tmp_path / "run", [ended]))
    assert arm.counts == {category: 1}
