"""What a table expects is found, typed and named; what cannot be a pack is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.cli.authoring.rows import Field, read_rows
from bench.common.errors import PackError


def csv(folder: Path, *lines: str) -> Path:
    path = folder / "t.csv"
    path.write_text("\n".join(lines))
    return path


def json_lines(folder: Path, *rows: object) -> Path:
    path = folder / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def column(folder: Path, *values: str) -> tuple[Field, list[object]]:
    """The field of an expected column of CSV, and its values."""
    rows = read_rows(csv(folder, "text,expected_it", *(f'a,"{value}"' for value in values)))
    return rows.fields[0], [row.expected["it"] for row in rows.rows]


def refusal(path: Path) -> str:
    with pytest.raises(PackError) as refused:
        read_rows(path)
    line = str(refused.value)
    assert "\n" not in line
    return line


def test_columns_that_begin_with_expected_hold_the_answer(tmp_path: Path) -> None:
    path = csv(tmp_path, "text,Expected Team,expected_class,other", "a,x,1,2", "b,y,2,3")
    rows = read_rows(path)
    assert [field.name for field in rows.fields] == ["team", "class_"]
    assert rows.rows[0].input == {"text": "a", "other": "2"} and rows.rows[0].expected == {"team": "x", "class_": 1}


def test_a_column_named_expected_alone_is_the_answer(tmp_path: Path) -> None:
    assert [field.name for field in read_rows(csv(tmp_path, "text,expected", "a,x", "b,y")).fields] == ["answer"]


def test_a_column_of_csv_has_the_type_that_all_its_values_can_have(tmp_path: Path) -> None:
    assert column(tmp_path, "1", "-20") == (Field("it", "integer"), [1, -20])
    assert column(tmp_path, "1", "2.5e1") == (Field("it", "number"), [1.0, 25.0])
    assert column(tmp_path, "True", "false") == (Field("it", "boolean"), [True, False])
    assert column(tmp_path, "1", "007") == (Field("it", "text"), ["1", "007"])
    assert column(tmp_path, "1", "12345678901234567890") == (Field("it", "text"), ["1", "12345678901234567890"])
    assert column(tmp_path, "Nan", "Tom") == (Field("it", "text"), ["Nan", "Tom"])


def test_few_texts_that_come_again_are_a_closed_vocabulary(tmp_path: Path) -> None:
    assert column(tmp_path, "b", "a", "a", "b")[0] == Field("it", "word", ("a", "b"))
    assert column(tmp_path, "b", "a", "a")[0] == Field("it", "text")
    assert column(tmp_path, "b\nc", "a", "a", "a")[0] == Field("it", "text")
    assert column(tmp_path, "b" * 61, "a", "a", "a")[0] == Field("it", "text")
    assert column(tmp_path, *(f"w{number % 13}" for number in range(40)))[0] == Field("it", "text")


def test_an_id_becomes_a_legal_name_and_a_row_without_one_is_numbered(tmp_path: Path) -> None:
    assert [row.id for row in read_rows(csv(tmp_path, "id,text,expected", "T-1,a,x", "22,b,y")).rows] == ["t_1", "row_22"]
    assert [row.id for row in read_rows(csv(tmp_path, "text,expected", "a,x", "b,y")).rows] == ["row_001", "row_002"]


def test_the_most_common_answer_is_that_of_all_fields_together(tmp_path: Path) -> None:
    path = csv(tmp_path, "text,expected_a,expected_b", "a,x,1", "b,x,2", "c,y,1", "d,X,1")
    assert read_rows(path).most_common == 2


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["text,label", "a,x"], "rename those that hold the answer, such as expected_team (there are text, label)"),
        (["expected", "x", "y"], "has only columns of the answer"),
        (["text,expected", ",x", "b,y"], "line 2: every input field is empty"),
        (["text,expected_a", "a,x", "b, "], "line 3: 'expected_a' is empty"),
        (["text,expected", "a,x", "b,x"], "'answer' is the same in all 2 rows, so there is nothing to tell apart"),
        (["text,expected", "a,x"], "'answer' is the same in the only row"),
        (["text,expected", "a,0.0", "b,1e-12"], "'answer' is the same in all 2 rows"),
        (["text,expected", "a,1", "b,inf"], "line 3: 'expected' is inf, not a finite number"),
        (["text,expected", "a,1", "b,1e999"], "line 3: 'expected' is 1e999, not a finite number"),
        (["text,expected", "a,Yes", "b,yes", "c,no", "d,no", "e,no", "f,no"], "has 'Yes' and 'yes', which differ in case"),
        (["text,expected_a,Expected A", "a,1,2", "b,2,3"], "'expected_a' and 'Expected A' are both the field 'a'"),
        (["id,text,expected", "a,b,1", "a,c,2"], "line 3: the id 'a' appears twice"),
        (["id,text,expected", "a b,b,1", "A-B,c,2"], "line 3: the ids 'a b' and 'A-B' are both 'a_b'"),
        (["id,text,expected", "é,b,1", "b,c,2"], "line 2: the id 'é' gives no name"),
    ],
)  # fmt: skip
def test_rows_that_make_no_pack_are_refused_with_the_reason(tmp_path: Path, lines: list[str], words: str) -> None:
    assert words in refusal(csv(tmp_path, *lines))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"text": "a", "expected": 1}, {"text": "b"}], "line 2: has no 'expected'"),
        ([{"text": "a", "expected": 1}, {"text": "b", "expected": 2, "more": 3}], "line 2: has 'more'"),
        ([{"text": "a", "expected": 1}, {"text": "b", "expected": "1"}], "'answer' has values of several types"),
        ([{"text": "a", "expected": 1}, {"text": "b", "expected": True}], "'answer' has values of several types"),
        ([{"text": "a", "expected": 1}, {"text": "b", "expected": None}], "line 2: 'expected' is empty"),
        ([{"id": None, "text": "a", "expected": 1}, {"id": 2, "text": "b", "expected": 2}], "the id None gives no name"),
        ([{"expected": {"a": 1}, "input": "x"}, {"input": {"a": 1}, "expected": "x"}], "line 2: "),
    ],
)  # fmt: skip
def test_rows_of_json_that_differ_in_kind_are_refused(tmp_path: Path, rows: list[object], words: str) -> None:
    assert words in refusal(json_lines(tmp_path, *rows))


def test_a_column_of_the_answer_must_be_nameable(tmp_path: Path) -> None:
    rows = [{"input": {"a": text}, "expected": {"é": text}} for text in ("x", "y")]
    assert "the column 'é' gives no name of a field" in refusal(json_lines(tmp_path, *rows))
