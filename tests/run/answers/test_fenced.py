"""An answer in code blocks: what is written is read back, and any text at all is read without an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from coded import CODE_ALONE, EVERYTHING, FILES, FUNCTION, NESTED, PATCH, Everything, Function, Nested, Patch
from cost import processor_time
from hypothesis import given
from hypothesis import strategies as st
from trials import TINY

from bench.run.answers.fenced import UnclosedBlock, blocks_of, write_answer
from bench.run.trial.decoding import Extracted
from bench.run.trial.reading import read
from bench.run.trial.schema import answer_schema
from bench.run.trial.verification import Unreadable
from bench.scenario import Json, Subtask

SCALARS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)  # half a surrogate pair is no JSON
LINES = ["", "x = 1", "```", "  ````py", "{", '{"a": 1}', "a:", "code:", "\r"]
CODE = st.one_of(
    SCALARS,
    st.lists(st.sampled_from(["", "x = 1", "```", "  ````py", "{", '{"a": 1}', "a:", "code:", "\r"]), max_size=5).map(
        "\n".join
    ),
)
EDITS = st.lists(st.fixed_dictionaries({"file": SCALARS, "find": CODE, "replace": CODE}), max_size=3)
MODULE = st.fixed_dictionaries({"title": SCALARS, "body": CODE})
KEYS = st.one_of(SCALARS, st.sampled_from(["main.py", "a.b", "code", "", "files.a", "x:", "`y`"]))
ANSWERS = st.fixed_dictionaries(
    {"plan": SCALARS, "code": CODE},
    optional={
        "test": st.none() | CODE,
        "files": st.dictionaries(KEYS, CODE, max_size=3),
        "edits": EDITS,
        "modules": st.dictionaries(KEYS, MODULE, max_size=2),
        "inner": st.none() | MODULE,
        "lines": st.lists(CODE, max_size=2),
    },
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *(
                '{"plan": "p"}',
                "{",
                "}",
                '{"edits": [{"file": "f"}]}',
                "```",
                "```python",
                "````",
                "\n",
                "code:",
                "edits[0].find:",
            ),
            *('{"files": []}', '{"files": {"a": 1}}', '{"edits": {}, "modules": {"m": {}}, "inner": {}}', "modules.m.body:"),
            *("files.a:", "x = {1: 2}", " ", '{"plan": "\n```\n"}', "~~~", "\r\n", '{"code": 1}', "\ud800"),
        ]
    ),
    max_size=20,
).map("".join)


def fenced(text: str, *subtasks: Subtask) -> Extracted | Unreadable:
    return read(text, "stop", subtasks, "fenced")


def value_of(text: str, *subtasks: Subtask) -> dict[str, Json]:
    reading = fenced(text, *subtasks)
    assert isinstance(reading, Extracted), reading
    return reading.value


@given(ANSWERS)
def test_an_answer_that_is_written_is_read_back(value: dict[str, Any]) -> None:
    assert value_of(write_answer(value, answer_schema([EVERYTHING])).text, EVERYTHING) == value


@given(ANSWERS, EDITS)
def test_so_is_one_to_several_subtasks_in_one_call(value: dict[str, Any], edits: list[Json]) -> None:
    joint = {"everything": value, "patch": {"edits": edits}}
    subtasks = (EVERYTHING, PATCH)
    assert value_of(write_answer(joint, answer_schema(subtasks)).text, *subtasks) == joint


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_so_is_what_does_not_fit_the_form(value: dict[str, Any]) -> None:
    """As a fault leaves it."""
    assert value_of(write_answer(value, answer_schema([EVERYTHING])).text, EVERYTHING) == value


@given(ANSWERS)
def test_an_answer_whose_json_holds_the_code_is_read_as_it_stands(value: dict[str, Any]) -> None:
    """As an agent hands it in that wrote JSON itself."""
    assert value_of(json.dumps(value), EVERYTHING) == value


@given(st.one_of(FRAGMENTS, st.text(max_size=60)), st.sampled_from([FUNCTION, PATCH, EVERYTHING, CODE_ALONE, FILES, NESTED]))
def test_any_text_is_read_or_refused_in_one_line(text: str, subtask: Subtask) -> None:
    for subtasks in ((subtask,), (subtask, PATCH), (subtask, FUNCTION)):
        reading = fenced(text, *dict.fromkeys(subtasks))
        if isinstance(reading, Unreadable):
            assert reading.detail and "\n" not in reading.detail
        else:
            assert 0 <= reading.start <= reading.end <= len(text)


PLAN = '{"plan": "add"}'
BLOCK = "```python\nreturn a + b\n```"
ANSWER = {"plan": "add", "code": "return a + b"}


@pytest.mark.parametrize(
    "text",
    [
        f"{PLAN}\n{BLOCK}",
        f"{PLAN}\n\ncode:\n{BLOCK}",
        f"{PLAN}\n\n### `code`\n\n{BLOCK}\nDone.",
        f"Here it is:\n```json\n{PLAN}\n```\n\n{BLOCK}",
        f"```\n{PLAN}\n```\n```\nreturn a + b\n```",
        f"```json\n{PLAN}\n\n{BLOCK}",
        f"{PLAN}\n\n  ````py\nreturn a + b\n  ````",
        f"{PLAN}\r\ncode:\r\n```python\r\nreturn a + b\r\n```\r\n",
        '{"plan": "add", "code": "see below"}\n' + BLOCK,
        '{"plan": "add", "code": "return a + b"}',
        f"{PLAN}\n{BLOCK}\nSo it is called:\n\ncode:\n{BLOCK}".replace(f"{PLAN}\n{BLOCK}\nSo it is called:", PLAN),
        f"My draft:\n```python\nreturn {{'a': 1}}\n```\n{PLAN}\n{BLOCK}",
        f"{PLAN}\n```python\ncode:\nreturn a + b\n```",
        f"{PLAN}\n\ncode:\n```python\ncode:\nreturn a + b\n```",
    ],
)
def test_the_ways_in_which_a_model_writes_it_are_one_answer(text: str) -> None:
    assert value_of(text, FUNCTION) == ANSWER


@pytest.mark.parametrize("label", [f"{CODE_ALONE.name}.code:\n", ""])
@pytest.mark.parametrize("others", [{}, {CODE_ALONE.name: {}}])
def test_an_output_of_nothing_but_code_may_be_left_out_of_the_json_of_several(others: dict[str, Json], label: str) -> None:
    text = f"{json.dumps({FUNCTION.name: {'plan': 'add'}, **others})}\n\n{BLOCK}\n{label}{BLOCK}"
    assert value_of(text, FUNCTION, CODE_ALONE) == {FUNCTION.name: ANSWER, CODE_ALONE.name: {"code": "return a + b"}}


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        (f"{PLAN}\ncode:\n```python\nreturn", "cut_off", "the code block 'code' is not closed: the reply breaks off inside it"),
        (f"{PLAN}\n```python\nreturn", "cut_off", "the code block is not closed: the reply breaks off inside it"),
        (f"{PLAN}\n```python\n\ud800\n```", "not_json", "a code block holds half a surrogate pair"),
        ('{"plan": "a', "cut_off", "the JSON object is not closed: the reply breaks off inside it"),
        (f"{PLAN}\ncode:\n{BLOCK}\ncode:\n{BLOCK}", "code_blocks", "there are two code blocks for code"),
        (
            f"{PLAN}\n{BLOCK}\n{BLOCK}",
            "code_blocks",
            "2 code blocks have no known name on the line before; there must be one block each for code",
        ),
        (BLOCK, "not_json", "the reply holds no JSON object before its code"),
        ("Sorry, no.", "refusal", "the reply is a refusal"),
        (" ", "empty", "the reply is empty"),
        ("```\n" * 1001, "code_blocks", "the reply has more than 1,000 lines of backticks"),
    ],
)
def test_what_cannot_be_read_says_why_in_one_line(text: str, reason: str, detail: str) -> None:
    reading = fenced(text, FUNCTION)
    assert isinstance(reading, Unreadable)
    assert (reading.reason, reading.detail) == (reason, detail)


def test_a_missing_block_is_a_missing_field() -> None:
    assert value_of(PLAN, FUNCTION) == {"plan": "add"}
    assert value_of(f"{BLOCK}\n{PLAN}", FUNCTION) == {"plan": "add"}, "a block before the JSON is passed over"


def test_nothing_behind_a_malformed_object_is_taken_in_its_place() -> None:
    """There only code follows, and code may hold what reads as JSON."""
    reading = fenced('{"plan": oops}\n```python\nx = {"plan": "no"}\n```\n{"plan": "no"}', FUNCTION)
    assert isinstance(reading, Unreadable) and reading.reason == "not_json"


def test_several_blocks_are_told_apart_by_the_line_before() -> None:
    text = '{"edits": [{"file": "a"}, {"file": "b"}]}\n'
    for name in ("edits[1].find", "edits[0].replace", "edits[1].replace", "edits[0].find"):
        text += f"**{name}:**\n```\n{name}\n```\n"
    edits = [{"file": "a", "find": "edits[0].find", "replace": "edits[0].replace"}]
    edits += [{"file": "b", "find": "edits[1].find", "replace": "edits[1].replace"}]
    assert value_of(text, PATCH) == {"edits": edits}


def test_without_names_they_stand_in_order_where_they_are_just_as_many() -> None:
    text = '{"edits": [{"file": "a"}]}\n```\none\n```\n```\ntwo\n```'
    assert value_of(text, PATCH) == {"edits": [{"file": "a", "find": "one", "replace": "two"}]}
    short = fenced('{"edits": [{"file": "a"}]}\n```\none\n```', PATCH)
    assert isinstance(short, Unreadable)
    assert short.detail == (
        "1 code block has no known name on the line before; there must be one block each for edits[0].find, edits[0].replace"
    )


def test_a_table_of_files_has_one_block_for_each_name() -> None:
    text = "files.main.py:\n```python\nrun()\n```\nfiles.README:\n```\nRead me.\n```"
    assert value_of(text, FILES) == {"files": {"main.py": "run()", "README": "Read me."}}


def test_an_answer_that_is_nothing_but_code_needs_no_json() -> None:
    assert value_of("Sure!\n```python\nx = {}\n```", CODE_ALONE) == {"code": "x = {}"}
    assert value_of("{}\n```python\nx = {}\n```", CODE_ALONE) == {"code": "x = {}"}
    words = fenced("I shall first think about it.", CODE_ALONE)
    assert isinstance(words, Unreadable) and words.is_prose


def test_a_name_in_the_block_itself_is_no_code_unless_something_belongs_to_it() -> None:
    assert value_of("```python\ncode:\ndef f(): ...\n```", CODE_ALONE) == {"code": "def f(): ..."}
    assert value_of("```yaml\ncode:\n  a: 1\n```", CODE_ALONE) == {"code": "code:\n  a: 1"}
    assert value_of("```\nother:\nx\n```", CODE_ALONE) == {"code": "other:\nx"}


def test_a_list_of_nothing_but_code_stays_in_the_json() -> None:
    answer = write_answer({"plan": "p", "code": "x", "lines": ["a", "b"]}, answer_schema([EVERYTHING]))
    assert answer.value == {"plan": "p", "lines": ["a", "b"]}
    assert list(answer.blocks) == ["code"]


def test_a_type_that_holds_itself_has_a_place_wherever_the_json_has_it() -> None:
    value = {"code": "a", "below": [{"code": "b", "below": []}, {"code": "c", "below": [{"code": "d"}]}]}
    answer = write_answer(value, answer_schema([NESTED]))
    assert list(answer.blocks) == ["code", "below[0].code", "below[1].code", "below[1].below[0].code"]
    assert value_of(answer.text, NESTED) == value


def test_an_answer_without_code_is_read_as_json_is() -> None:
    subtasks = TINY.task.subtasks
    text = f'{{"gather": 1}}\n{BLOCK}'
    assert read(text, "stop", subtasks, "fenced") == read(text, "stop", subtasks, "json")


def test_code_that_holds_a_fence_stands_in_a_longer_one() -> None:
    answer = write_answer({"plan": "p", "code": "a\n```\nb"}, answer_schema([FUNCTION]))
    assert answer.blocks["code"] == "\n\ncode:\n````python\na\n```\nb\n````"


def test_a_block_ends_with_a_fence_of_at_least_its_own_length() -> None:
    [block] = list(blocks_of("````\n```\ninner\n```\n`````", 0))  # type: ignore[arg-type]
    assert block.code == "```\ninner\n```"
    assert blocks_of("code:\n````\n```", 0) == UnclosedBlock("code")


@pytest.mark.parametrize(
    "part", ["```\n", "```\n```\n", "{", "{\n```\n", '{"a": 1}\n```x\n', " \n", "`", "code:\n```\nx\n```\n", '{"a": {']
)
def test_a_long_text_is_read_in_time_that_grows_as_it_does(part: str) -> None:
    """In time that grew as its square, each of these took 8 seconds or more."""
    text = part * (160_000 // len(part))
    with processor_time(at_most=0.6):
        fenced(PLAN + "\n" + text, FUNCTION)
        fenced(text, FUNCTION)


def test_the_types_of_these_tests_hold_what_is_read() -> None:
    Function.model_validate(ANSWER)
    Patch.model_validate({"edits": []})
    Everything.model_validate(ANSWER)
    Nested.model_validate({"code": "x", "below": [{"code": "y"}]})
