"""A reply is one row, whatever it held; why it was rejected is told by its verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from records import accepted, called, committed, fault, rejected, run_of, trial

from bench.record.events import Event, Stage


def test_a_reply_with_several_outputs_is_one_row_of_the_first_kind_there_was(tmp_path: Path) -> None:
    events: list[Event] = [
        called(1, "a", "b", "c"),
        *(rejected(1, "a", "check"), rejected(1, "b", "schema", violation="vocabulary"), accepted(1, "c")),
        called(2, "a", "b", "c"),
        *(accepted(2, name) for name in "abc"),
    ]
    run = run_of(tmp_path / "run", [trial(outcome="gave_up", events=events)])
    assert run.replies[["call", "subtask", "kind"]].values.tolist() == [[1, "all", "vocabulary"], [2, "all", ""]]


def test_replies_of_a_struck_call_and_what_was_made_from_them_are_exposed(tmp_path: Path) -> None:
    events: list[Event] = [
        *(*fault("planned", "delivered", call=1, subtask="a"), called(1, "a"), committed(1, "a")),
        *(called(2, "b"), committed(2, "b", made_from=[("a", 1)]), called(3, "c"), committed(3, "c")),
        *(rejected(1, "a"), rejected(2, "b"), accepted(3, "c"), *fault("gave_up", call=1, subtask="a")),
    ]
    run = run_of(tmp_path / "run", [trial(plan="paper", outcome="gave_up", events=events)])
    assert dict(zip(run.replies["subtask"], run.replies["exposed"], strict=True)) == {"a": True, "b": True, "c": False}


def test_a_struck_reply_is_what_was_said_of_it_as_it_stood(tmp_path: Path) -> None:
    undamaged = replace(rejected(2, "b", "check"), view="undamaged", fault=1)
    events: list[Event] = [*fault("planned", "delivered"), called(2, "b"), undamaged, rejected(2, "b", "insufficient")]
    run = run_of(tmp_path / "run", [trial(plan="paper", outcome="gave_up", events=[*events, *fault("gave_up")])])
    assert run.replies[["exposed", "kind"]].values.tolist() == [[True, "insufficient"]]


def test_an_inapplicable_fault_exposes_nothing(tmp_path: Path) -> None:
    stages: tuple[Stage, ...] = ("planned", "not_applicable")
    events: list[Event] = [*fault(*stages, call=1, subtask="a"), called(1, "a"), accepted(1, "a")]
    run = run_of(tmp_path / "run", [trial(plan="paper", events=events)])
    assert run.replies["exposed"].tolist() == [False]
