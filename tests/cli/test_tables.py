"""A table is read, or refused in one line that names the place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.cli.rows import read_rows
from bench.cli.tables import read_table
from bench.errors import PackError


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(PackError) as refused:
        read_table(path)
    return str(refused.value).removeprefix(str(path))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_is_read_with_the_delimiter_of_its_header_and_a_cell_may_hold_lines(tmp_path: Path, delimiter: str) -> None:
    text = f'\ufefftext{delimiter}expected\r\n"a{delimiter} ""b""\nc"{delimiter}1\r\n\r\nd{delimiter}2\r\n'
    first, second = read_table(written(tmp_path, "t.csv", text))
    assert first.fields == {"text": f'a{delimiter} "b"\nc', "expected": "1"}
    assert second.at.endswith("line 5")


def test_json_lines_are_flat_or_keep_what_is_expected_apart(tmp_path: Path) -> None:
    flat, line = '{"input": "a\\u2028b", "expected": 1}', '\n{"id": 7, "input": {"a": 1}, "expected": "x"}\r\n'
    assert read_table(written(tmp_path, "flat.jsonl", flat))[0].fields == {"input": "a\u2028b", "expected": 1}
    [record] = read_table(written(tmp_path, "apart.jsonl", line))
    assert (record.fields, record.expected) == ({"id": 7, "a": 1, "expected": "x"}, ("expected",))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.xlsx", "", "is neither .csv nor .jsonl"),
        ("t.csv", b"a\xff", "is no text in UTF-8 (byte 1)"),
        ("t.csv", "a,b\n\0,1\n", "holds a zero byte"),
        ("t.csv", "", "has no rows"),
        ("t.csv", "a,b\n\n,\n", "has no rows"),
        ("t.jsonl", "\n \n", "has no rows"),
        ("t.csv", "a,b\n1,2,3\n", ", line 2: has 3 cells, and the header has 2"),
        ("t.csv", 'a,b\n"1,2\n', ", line 2: is no CSV: unexpected end of data"),
        ("t.csv", f"a,b\n{'x' * 140_000},2\n", ", line 2: is no CSV: field larger than field limit (131072)"),
        ("t.csv", "a,,b\n1,2,3\n", ", line 1: '' is no name for a column"),
        ("t.csv", "a,a\n1,2\n", ", line 1: two columns are named 'a'"),
        ("t.jsonl", '{"a": 1}\n{"a": \n', ", line 2: is no JSON: Expecting value"),
        ("t.jsonl", "[1]", ", line 1: is no JSON object"),
        ("t.jsonl", "[" * 100_000, ", line 1: is no JSON: "),
        ("t.jsonl", '{"a": NaN}', ", line 1: is no JSON: NaN is no number"),
        ("t.jsonl", '{"a": 1e999}', ", line 1: is no JSON: 1e999 is too large a number"),
        ("t.jsonl", f'{{"a": {"9" * 5000}}}', ", line 1: is no JSON: Exceeds the limit"),
        ("t.jsonl", '{"a": 9007199254740993}', ", line 1: 'a' is a whole number beyond 2^53"),
        ("t.jsonl", '{"a": "\\ud800"}', ", line 1: is no JSON: "),
        ("t.jsonl", '{"a": 1, "a": 2}', ", line 1: is no JSON: the field 'a' stands twice"),
        ("t.jsonl", '{"a\\nb": 1}', ", line 1: 'a\\nb' is no name for a column"),
        ("t.jsonl", '{"a": [1]}', ", line 1: 'a' is a list; a field is a text, a number, true or false"),
        ("t.jsonl", '{"input": {"a": 1}, "expected": {"b": {}}}', ", line 1: 'b' is an object"),
        ("t.jsonl", '{"input": {"a": 1}, "label": 1}', ", line 1: 'label' stands beside input and expected"),
        ("t.jsonl", '{"input": {"a": 1}, "expected": {"a": 1}}', ", line 1: 'a' is an input and expected as well"),
        ("t.jsonl", '{"input": {"id": 1}, "expected": "x"}', ", line 1: an id stands beside input and expected"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
    assert refusal(written(tmp_path, name, content)).removeprefix(": ").startswith(said)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert refusal(tmp_path / "t.csv") == ": cannot be read: No such file or directory"


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(["x", "X ", "nan"])
)
NAMES = st.sampled_from(["id", "input", "expected", "expected_a", "Expected A", "text"]) | st.text(max_size=4)
ROW = st.dictionaries(NAMES, SCALARS | st.dictionaries(NAMES, SCALARS, max_size=3), max_size=4)
CONTENT = st.one_of(
    st.binary(max_size=60),
    st.text('expctd,;"\n\r1.', max_size=60).map(lambda text: f"text,expected\n{text}".encode()),
    st.lists(ROW, max_size=4).map(lambda rows: "\n".join(map(json.dumps, rows)).encode()),
    st.lists(st.fixed_dictionaries({"text": SCALARS, "expected": SCALARS}), min_size=2, max_size=4).map(
        lambda rows: "\n".join(map(json.dumps, rows)).encode()
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(content=CONTENT, suffix=st.sampled_from(["csv", "jsonl"]))
def test_whatever_the_file_holds_it_gives_rows_or_one_line(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = written(tmp_path, f"t.{suffix}", content)
    try:
        rows = read_rows(path)
    except PackError as error:
        assert "\n" not in str(error) and str(path) in str(error)
    else:
        names = {field.name for field in rows.fields}
        assert len({row.id for row in rows.rows}) == len(rows.rows) >= 2
        assert all(row.input and row.expected.keys() == names for row in rows.rows)
