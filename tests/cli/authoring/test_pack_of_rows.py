"""A pack made of rows is sound as it is, whatever the rows hold; where it cannot be made nothing is left behind."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from commands import UNDRAWN, bench, workplace
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cli.authoring import pack_of_rows as module
from bench.cli.authoring.check import check_pack
from bench.cli.authoring.pack_of_rows import pack_of_rows
from bench.cli.authoring.rows import read_rows
from bench.common.errors import PackError
from bench.run.packs import load_instances
from bench.scenario import Context

TEAMS = ("billing", "outage", "account", "shipping")
TICKETS = [
    {"text": f"Ticket {number}: {'it is down' * number}\n{{{{ x }}}} \"quoted\" \\n", "expected_team": TEAMS[number % 4],
     "expected_urgent": number % 3 == 0, "expected_cost": number / 7, "expected_name": f'O"Neil\n{number // 2}'}
    for number in range(12)
]  # fmt: skip


def pack_of(folder: Path, rows: Sequence[Mapping[str, object]], name: str = "tickets") -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return pack_of_rows(name, folder / "packs", read_rows(path), path.name)


def test_a_pack_of_rows_is_sound_as_it_is_and_nothing_need_be_noted(tmp_path: Path) -> None:
    folder = pack_of(tmp_path, TICKETS)
    results = [result for _, result in check_pack(folder.name, [folder.parent])]
    assert [result for result in results if result.status != "ok"] == []
    assert "keyword rules alone do not solve it (they find no answer)" in [result.what for result in results]


def test_a_table_whose_rows_say_the_answer_is_found_too_easy(tmp_path: Path) -> None:
    folder = pack_of(tmp_path, [{"text": f"{TEAMS[n % 4].upper()}, please", "expected": TEAMS[n % 4]} for n in range(8)])
    problems = [line for _, result in check_pack(folder.name, [folder.parent]) for line in result.problems]
    assert len(problems) == 1 and "the baseline is graded correct: the pack is too easy" in problems[0]


def test_a_wrong_answer_differs_in_one_field_and_the_score_says_so(tmp_path: Path) -> None:
    first = load_instances("tickets", [pack_of(tmp_path, TICKETS).parent])[0]
    grades = {wrong.name: first.grade_outputs({**first.reference, **wrong.outputs}) for wrong in first.wrong}
    assert {name.partition("_of_")[0] for name in grades} == {"team", "urgent", "cost", "name"}
    assert {(grade.correct, grade.score) for grade in grades.values()} == {(False, 0.75)}


def test_a_text_is_compared_without_case_and_space_and_a_number_up_to_the_ninth_digit(tmp_path: Path) -> None:
    first = load_instances("tickets", [pack_of(tmp_path, TICKETS).parent])[1]
    right = dict(first.reference["answer"])
    for field, value, correct in (
        ("name", ' o"neil 0', True), ("name", 'o"neil0', False), ("cost", 0.14285714286, True), ("cost", 0.142857, False),
    ):  # fmt: skip
        answer = {**first.reference, "answer": {**right, field: value}}
        assert first.grade_outputs(answer).correct is correct, (field, value)


def test_a_quotation_must_stand_in_the_row(tmp_path: Path) -> None:
    first = load_instances("tickets", [pack_of(tmp_path, TICKETS).parent])[3]
    [subtask] = [subtask for subtask in first.task.subtasks if subtask.checks]
    objections = {
        quote: subtask.checks[0](subtask.output.model_validate({"quote": quote}), Context(first.task.documents, {}))
        for quote in ("it is  down", "it is up now", "it")
    }
    assert [bool(objection) for objection in objections.values()] == [False, True, True]


INPUTS = st.text(max_size=12) | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.none()
ANSWERS = st.one_of(
    st.lists(st.text(max_size=5), min_size=4, max_size=6),
    st.lists(st.sampled_from(['a"b', "\\", "{{ x }}", "\u2028", "a'b"]), min_size=4, max_size=6),
    st.lists(st.integers(-3, 3) | st.floats(-2, 2), min_size=4, max_size=6),
    st.lists(st.booleans(), min_size=4, max_size=6),
)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), answers=ANSWERS)
def test_whatever_the_rows_hold_the_reference_solves_and_wrong_answers_do_not(
    data: st.DataObject, answers: list[object]
) -> None:
    rows = [{"a b": data.draw(INPUTS), "{{ c }}": data.draw(INPUTS), "expected_it": answer} for answer in answers]
    with tempfile.TemporaryDirectory() as folder:
        try:
            pack = pack_of(Path(folder), rows)
        except PackError:
            return
        for instance in load_instances(pack.name, [pack.parent]):
            check = instance.task.subtasks[0].checks[0]
            quoted = instance.task.subtasks[0].output.model_validate(instance.reference["evidence"])
            assert check(quoted, Context(instance.task.documents, {})) is None
            assert instance.grade_outputs(instance.reference).correct
            assert instance.wrong and not any(
                instance.grade_outputs({**instance.reference, **wrong.outputs}).correct for wrong in instance.wrong
            )
            instance.baseline(instance.task.documents)


def as_csv(rows: Sequence[Mapping[str, str]]) -> str:
    return "\n".join(["text,expected_team", *(f"{row['text']},{row['expected_team']}" for row in rows)])


def as_jsonl(rows: Sequence[Mapping[str, str]]) -> str:
    return "\n".join(map(json.dumps, rows))


@pytest.mark.parametrize(("name", "written"), [("tickets.csv", as_csv), ("tickets.jsonl", as_jsonl)], ids=["csv", "jsonl"])
def test_a_table_of_thirty_rows_becomes_a_report_in_three_commands(
    name: str, written: Callable[[Sequence[Mapping[str, str]]], str], tmp_path: Path
) -> None:
    config = workplace(tmp_path, repetitions=1)
    rows = [{"text": f"ticket {number}", "expected_team": TEAMS[number % 4]} for number in range(30)]
    (tmp_path / name).write_text(written(rows))
    commands = (
        ["new", "scenario", "tickets", "--from", name],
        ["check", "tickets"],
        ["run", f"configs/{config.name}", "--scenario", "tickets", "--report"],
    )
    made, checked, ran = [bench(tmp_path, *words, **UNDRAWN) for words in commands]
    assert (made[0], checked[0], ran[0]) == (0, 0, 0)
    assert made[1].startswith(
        "scenarios/tickets has 30 tasks; the answer: team (4 words)\n    the most common answer is right in 8 of them"
    )
    assert "120 trials" in ran[1] and "solved" in ran[1] and list(tmp_path.glob("reports/*/report.html"))


def test_rows_that_make_no_pack_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,expected\na,1\n")
    for words in (["demo", "--from", "t.csv"], ["demo", "--from", "gone.csv"], ["Demo"]):
        code, _, err = bench(tmp_path, "new", "scenario", *words)
        assert code == 2 and err.startswith("bench: ") and err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_a_folder_that_cannot_be_written_whole_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "asdict", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pack_of(tmp_path, TICKETS)
    assert list((tmp_path / "packs").iterdir()) == []
