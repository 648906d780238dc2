"""A table is read, or refused in one line that names the place."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from cost import processor_time
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.cli.authoring.rows import read_rows
from bench.cli.authoring.tables import read_table
from bench.common.errors import PackError


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


ROWS = [{"id": "t1", "text": "a, b; c", "expected": "x"}, {"id": "t2", "text": "d", "expected": "y"}]


@pytest.mark.parametrize(
    "text",
    [
        'id;text;expected\nt1;"a, b; c";x\nt2;d;y\n',
        "id\ttext\texpected\nt1\ta, b; c\tx\nt2\td\ty\n",
        "id|text|expected\nt1|a, b; c|x\nt2|d|y\n",
        'id, "text", expected\nt1, "a, b; c", x\nt2, d, y\n',
        'id,text,expected\nt1, "a, b; c",x\nt2,d,y\n',
        '\n\r\n\nid;text;expected\nt1;"a, b; c";x\n\n\nt2;d;y\n\n',
        '  \n;;\nid;text;expected\nt1;"a, b; c";x\n;;\nt2;d;y',
        'id;text;expected\rt1;"a, b; c";x\rt2;d;y\r',
        'id;text;expected;;\nt1;"a, b; c";x;;\nt2;d;y;;\n',
        'id,text,expected\nt1,"a, b; c",x,,\nt2,d,y\n',
        'sep=;\nid;text;expected\nt1;"a, b; c";x\nt2;d;y\n',
        '\ufeffsep=;\r\nid;text;expected\r\nt1;"a, b; c";x\r\nt2;d;y\r\n',
        '\n"SEP=,"\n\nid,text,expected\nt1,"a, b; c",x\nt2,d,y\n',
        'sep=;;;\nid;text;expected\nt1;"a, b; c";x\nt2;d;y\n',
        "sep=\\t\nid\ttext\texpected\nt1\ta, b; c\tx\nt2\td\ty\n",
        "sep=^\nid^text^expected\nt1^a, b; c^x\nt2^d^y\n",
        '"id";"text";"expected"\n"t1";"a, b; c";"x"\n"t2";"d";"y"\n',
    ],
)
def test_each_way_of_writing_a_table_gives_its_rows(tmp_path: Path, text: str) -> None:
    records = read_table(written(tmp_path, "t.csv", text))
    assert [record.fields for record in records] == ROWS
    lines = [number for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1) if "t1" in line or "t2" in line]
    assert [int(record.at.rpartition(" ")[2]) for record in records] == lines


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (
            'id;"text, as written, by users, verbatim";expected',
            ["id", "text, as written, by users, verbatim", "expected"],
        ),
        ('"a;b;c;d",text,expected', ["a;b;c;d", "text", "expected"]),
        ("id;text, raw, long, old, odd;expected", ["id", "text, raw, long, old, odd", "expected"]),
        ('id;"the ""text"", as is";expected', ["id", 'the "text", as is', "expected"]),
        ('id;"text\nof, two, lines"', None),
        ('id\tthe "text", as is, now\texpected', ["id", 'the "text", as is, now', "expected"]),
    ],
)
def test_the_delimiter_is_told_by_the_header_as_it_is_quoted_and_by_the_rows(
    tmp_path: Path, header: str, names: list[str] | None
) -> None:
    delimiter = "\t" if "\t" in header else "," if header.startswith('"a;b') else ";"
    path = written(tmp_path, "t.csv", f"{header}\n1{delimiter}2{delimiter}3\n")
    if names is None:
        assert "cannot be the name of a column" in refusal(path)
    else:
        assert read_table(path)[0].fields == dict(zip(names, "123", strict=True))


def test_a_cell_may_be_long_and_the_limit_of_the_process_stays_as_it_was(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    [record] = read_table(written(tmp_path, "t.csv", f"text,expected\n{'x  ' * 200_000},1\n"))
    assert len(str(record.fields["text"])) == 600_000
    refusal(written(tmp_path, "t.csv", "text,expected\n1\n"))
    assert csv.field_size_limit() == before


def test_json_lines_are_flat_or_keep_what_is_expected_apart(tmp_path: Path) -> None:
    flat, line = '{"input": "a\\u2028b", "expected": 1}', '\n{"id": 7, "input": {"a": 1}, "expected": "x"}\r\n'
    assert read_table(written(tmp_path, "flat.jsonl", flat))[0].fields == {"input": "a\u2028b", "expected": 1}
    [record] = read_table(written(tmp_path, "apart.jsonl", line))
    assert (record.fields, record.expected) == ({"id": 7, "a": 1, "expected": "x"}, ("expected",))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.xlsx", "", "is neither .csv nor .jsonl"),
        ("t.csv", b"a\xff", "is not UTF-8 text (byte 1)"),
        ("t.csv", "a,b\n\0,1\n", "holds a zero byte"),
        ("t.csv", "", "has no rows"),
        ("t.csv", "a,b\n\n,\n", "has no rows"),
        ("t.jsonl", "\n \n", "has no rows"),
        ("t.csv", "a,b\n1,2,3\n", ", line 2: has 3 cells, and the header has 2"),
        ("t.csv", 'a,b\n"1,2\n', ", line 2: is not CSV: unexpected end of data"),
        ("t.csv", f"a,b\n{'x' * 2**24}x,2\n", ", line 2: is not CSV: a cell is longer than 16,777,216 characters; shorten it"),
        ("t.csv", "sep=;\n\na;b\n1;2;3\n", ", line 4: has 3 cells, and the header has 2"),
        ("t.csv", "\n\na;b\n1;2;3\n", ", line 4: has 3 cells, and the header has 2"),
        ("t.csv", "sep=;\n", "has no rows"),
        ("t.csv", "a,,b\n1,2,3\n", ", line 1: '' cannot be the name of a column"),
        ("t.csv", "a,a\n1,2\n", ", line 1: two columns are named 'a'"),
        ("t.jsonl", '{"a": 1}\n{"a": \n', ", line 2: is not JSON: Expecting value"),
        ("t.jsonl", "[1]", ", line 1: is not a JSON object"),
        ("t.jsonl", "[" * 100_000, ", line 1: is not JSON: "),
        ("t.jsonl", '{"a": NaN}', ", line 1: is not JSON: NaN is not a number"),
        ("t.jsonl", '{"a": 1e999}', ", line 1: is not JSON: 1e999 is too large a number"),
        ("t.jsonl", f'{{"a": {"9" * 5000}}}', ", line 1: is not JSON: Exceeds the limit"),
        ("t.jsonl", '{"a": 9007199254740993}', ", line 1: 'a' is a whole number beyond 2^53"),
        ("t.jsonl", '{"a": "\\ud800"}', ", line 1: is not JSON: "),
        ("t.jsonl", '{"a": 1, "a": 2}', ", line 1: is not JSON: the field 'a' appears twice"),
        ("t.jsonl", '{"a\\nb": 1}', ", line 1: 'a\\nb' cannot be the name of a column"),
        ("t.jsonl", '{"a": [1]}', ", line 1: 'a' is a list; a field is a text, a number, true or false"),
        ("t.jsonl", '{"input": {"a": 1}, "expected": {"b": {}}}', ", line 1: 'b' is an object"),
        ("t.jsonl", '{"input": {"a": 1}, "label": 1}', ", line 1: 'label' stands beside input and expected"),
        ("t.jsonl", '{"input": {"a": 1}, "expected": {"a": 1}}', ", line 1: 'a' is an input and expected as well"),
        ("t.jsonl", '{"input": {"id": 1}, "expected": "x"}', ", line 1: an id stands beside input and expected"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    assert refusal(written(tmp_path, name, content)).removeprefix(": ").startswith(words)


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


DELIMITED = st.text(st.sampled_from("ab,;|\t\"'\n\r =é") | st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NAME = DELIMITED.map(lambda text: "".join(char for char in text if char.isprintable()).strip())
HEADERS = st.lists(NAME.filter(bool), min_size=2, max_size=4, unique=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(data=st.data(), delimiter=st.sampled_from(",;\t|"), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_quoted_table_is_read_as_it_was_written(tmp_path: Path, data: st.DataObject, delimiter: str, end: str) -> None:
    names = data.draw(HEADERS)
    cells = st.lists(DELIMITED, min_size=len(names), max_size=len(names))
    rows = data.draw(st.lists(cells.map(lambda row: ["x", *row[1:]]), min_size=1, max_size=4))
    before = data.draw(st.sampled_from(["", "\ufeff", end, f"\ufeff{end * 2}", f"sep={delimiter}{end}"]))
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    path = written(tmp_path, "t.csv", before + text.getvalue())
    assert [list(record.fields.values()) for record in read_table(path)] == rows
    assert list(read_table(path)[0].fields) == names


@pytest.mark.parametrize("part", ["\n", ",", '"', '"",', "sep=;", ";", '"\n', "a;", " ", "x\n", '"a""'])
def test_a_long_table_is_read_in_time_that_grows_as_it_does(tmp_path: Path, part: str) -> None:
    with processor_time(at_most=0.8):
        for before in ("", "a,b\n", "sep=;", '"'):
            path = written(tmp_path, "t.csv", before + part * (100_000 // len(part)))
            try:
                read_table(path)
            except PackError as error:
                assert len(str(error)) < 500 and "\n" not in str(error)
