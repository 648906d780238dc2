"""A pack that cannot be used is refused in one line that says what is wrong, where, and what to do."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pack_edits import Edit, copy_of, in_code, in_file, refusal

from bench.common.errors import PackError
from bench.run.packs import PackFolder, load_pack
from bench.run.packs.names import refuse_names
from bench.run.trial.decoding import Extracted
from bench.run.trial.verification import extract


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return copy_of("tiny", tmp_path)


def before_the_end(code: str) -> Edit:
    return in_code("    return folder.scenario(", f"{code}    return folder.scenario(")


def before_all(code: str) -> Edit:
    return in_code("SURE = 0.6", f"{code}\nSURE = 0.6")


def binary(name: str, content: bytes) -> Edit:
    return lambda pack: (pack / name).write_bytes(content)


NO_TEXT = "is not UTF-8 text, and a model can read nothing else; save it as UTF-8, or remove it"


UNUSABLE: dict[str, tuple[Edit, str]] = {
    "cycle": (
        in_code('reads=("notes.txt",)', 'reads=("notes.txt", "review")'),
        "subtask 'gather' reads 'review', but the reads form a cycle: gather -> review -> gather",
    ),
    "reads itself": (in_code('reads=("gather",)', 'reads=("gather", "total")'), "form a cycle: total -> total"),
    "order": (
        before_the_end("    subtasks = (subtasks[0], subtasks[2], subtasks[1])\n"),
        "subtask 'review' reads 'total', but 'total' stands after it; change their order",
    ),
    "unknown read": (
        in_code('reads=("gather",)', 'reads=("gathr",)'),
        "reads 'gathr', which does not exist; did you mean 'gather'?",
    ),
    "unread document": (
        lambda pack: (pack / "documents" / "more.txt").write_text("more"),
        "no subtask reads the document 'more.txt'; let one read it, or remove it",
    ),
    "foreign name in a prompt": (
        in_file("prompts/total.md", "`gather`", "`notes.txt`"),
        "the prompt of 'total' names `notes.txt`, which it does not read; add it to its reads, or take it out",
    ),
    "duplicate subtask": (in_code('"review",', '"total",'), "the subtask 'total' appears twice; rename one"),
    "subtask named as a document": (
        lambda pack: (pack / "documents" / "notes.txt").rename(pack / "documents" / "gather"),
        "the name 'gather' appears twice",
    ),
    "no subtask": (before_the_end("    subtasks = ()\n"), "has no subtask"),
    "nothing required": (
        in_code("approved: bool\n    problems: list[str]", "approved: bool = True\n    problems: list[str] = []"),
        "the output of 'review' has no required field, so that no missing field could ever be noticed; require one",
    ),
    "module that does not load": (in_code("from __future__", "import nowhere\nfrom __future__"), "does not load: "),
    "function that fails": (
        before_the_end("    1 / 0\n"),
        "fails: ZeroDivisionError",
    ),
    "no function": (in_code("def scenario(folder", "def scenery(folder"), "defines no function scenario(folder)"),
    "function of something else": (
        in_code("return folder.scenario(subtasks, ", "return dict("),
        "must return a bench.scenario.Scenario",
    ),
    "missing prompt": (lambda pack: (pack / "prompts" / "total.md").unlink(), "prompts/total.md: cannot be read"),
    "missing reference": (lambda pack: (pack / "reference" / "answer.json").unlink(), "answer.json: cannot be read"),
    "reference that is not JSON": (in_file("reference/answer.json", "{", "("), "answer.json: is not JSON"),
    "reference that is a list": (
        lambda pack: (pack / "reference" / "answer.json").write_text("[]"),
        "answer.json: must be an object with one output per subtask",
    ),
    "reference that does not fit": (
        in_file("reference/answer.json", '"apples": 12', '"apples": 0'),
        "the reference answer does not fit the schema of 'gather': deliveries.0.apples must be at least 1, not 0",
    ),
    "reference that lacks an output": (
        lambda pack: (
            (pack / "reference" / "answer.json").write_text(json.dumps({"gather": {"deliveries": [], "confidence": 1}}))
            and None
        ),
        "the reference answer must hold an output for each subtask, and has none for 'total'",
    ),
    "wrong answer without a why": (
        in_file("reference/wrong/miscounted.json", '"why"', '"how"'),
        'must be an object with "why"',
    ),
    "wrong answer for no subtask": (
        in_file("reference/wrong/miscounted.json", '"total":', '"totl":'),
        "the wrong answer 'miscounted' holds an output for 'totl', which is not a subtask; did you mean 'total'?",
    ),
    "subtask named as no address can be": (
        in_code('"gather",', '"a/b",'),
        "'a/b' is no name for a subtask; use lower-case letters, digits and underscores, a letter first",
    ),
    "subtask without a name": (in_code('"gather",', '"",'), "'' is no name for a subtask"),
    "reads of letters": (
        in_code('reads=("gather",)', 'reads=("gather")'),
        'reads is a text; write reads=("gather",), with a comma',
    ),
    "reads in a list": (in_code('reads=("gather",)', 'reads=["gather"]'), "reads must be a tuple of names"),
    "read twice": (in_code('reads=("gather",)', 'reads=("gather", "gather")'), "reads 'gather' twice; name it once"),
    "empty prompt": (
        lambda pack: (pack / "prompts" / "total.md").write_text(" \n"),
        "total.md: is empty; write there what is asked",
    ),
    "empty role": (lambda pack: (pack / "prompts" / "role.md").write_text(""), "role.md: is empty; write there what is asked"),
    "prompt of a document that is not there": (
        in_file("prompts/gather.md", "`notes.txt`", "`note.txt`"),
        "the prompt of 'gather' names `note.txt`, which is not a document; did you mean 'notes.txt'?",
    ),
    "prompt of a file that is not there": (
        in_file("prompts/gather.md", "`notes.txt`", "`days.csv`"),
        "names `days.csv`, which is no",
    ),
    "picture": (binary("documents/apple.png", b"\x89PNG\r\n\x1a\n"), f"documents/apple.png: {NO_TEXT}"),
    "text with a NUL": (binary("documents/apple.txt", b"apples\0"), f"documents/apple.txt: {NO_TEXT}"),
    "UTF-16": (binary("prompts/total.md", "Add up".encode("utf-16")), f"prompts/total.md: {NO_TEXT}"),
    "what a Mac leaves": (binary("documents/.DS_Store", b""), f"documents/.DS_Store: {NO_TEXT}"),
    "NaN in the reference": (
        in_file("reference/answer.json", "0.9", "NaN"),
        "answer.json: is not JSON: NaN is not a number in JSON",
    ),
    "endless number": (
        in_file("reference/answer.json", "0.9", "1e999"),
        "answer.json: is not JSON: 1e999 is not a number in JSON",
    ),
    "half a character": (in_file("reference/answer.json", "Monday", "\\ud800"), "answer.json: is not JSON: "),
    "NaN in a reference made in code": (
        in_code("grade=grade", 'reference={**folder.reference(), "total": {"total": float("nan")}}, grade=grade'),
        "the reference answer has a value for 'total' that is not JSON: ValueError",
    ),
    "output of no model": (
        in_code("class Review(Output)", "class Review"),
        "output must be a class derived from bench.scenario.Output",
    ),
    "output of another model": (
        in_code("output=Total", "output=dict"),
        "output must be a class derived from bench.scenario.Output",
    ),
    "validator that fails": (
        in_code(
            "class Review(Output):",
            "class Review(Output):\n    from pydantic import field_validator as v\n"
            '    at = v("approved")(lambda value: value.boo)\n',
        ),
        "scenario.py:34: an output type fails: AttributeError: 'bool' object has no attribute 'boo'",
    ),
    "one check": (
        in_code("checks=(days_are_in_the_notes,)", "checks=days_are_in_the_notes"),
        "checks must be a tuple of functions",
    ),
    "check that is none": (
        in_code("checks=(days_are_in_the_notes,)", 'checks=("days",)'),
        "subtask 'gather': the check 'days' is not a function",
    ),
    "check of one value": (
        in_code("(output: Gathered, context: Context)", "(output: Gathered)"),
        "subtask 'gather': the check `days_are_in_the_notes` must take two values: (output, context)",
    ),
    "sufficient of two": (
        in_code("def sure(output: Gathered)", "def sure(output, context)"),
        "sufficient `sure` must take one value: (output)",
    ),
    "skip of none": (
        in_code("def nothing_came(outputs: Mapping[str, Any])", "def nothing_came()"),
        "skip `nothing_came` must take one value",
    ),
    "finds of none": (
        in_code("def total_found_wrong(output: Review)", "def total_found_wrong()"),
        "finds `total_found_wrong` must take",
    ),
    "grader of one value": (
        in_code("(answer: Answer, truth: Path)", "(answer: Answer)"),
        "grade `grade` must take two values: (answer, truth)",
    ),
    "baseline of none": (
        in_code("def baseline(_: Mapping[str, str])", "def baseline()"),
        "baseline `baseline` must take one value: (documents)",
    ),
    "secrets of letters": (
        in_code('("forty-two",)', '("forty-two")'),
        'secrets is a text; write secrets=("forty-two",), with a comma',
    ),
    "empty secret": (in_code('("forty-two",)', '("",)'), "each secret must be a text that is not empty"),
    "answer of letters": (
        in_code("grade=grade", 'grade=grade, answer=("total")'),
        'answer is a text; write answer=("total",), with a comma',
    ),
    "wrong answers that are none": (
        in_code("grade=grade", 'grade=grade, wrong={"total": 1}'),
        "wrong must be a sequence of bench.scenario.WrongAnswer(name, why, outputs)",
    ),
    "answer of no subtask": (
        in_code("grade=grade", 'grade=grade, answer=("totl",)'),
        "answer names 'totl', which is not a subtask; did you mean 'total'?",
    ),
    "answer twice": (in_code("grade=grade", 'grade=grade, answer=("total", "total")'), "answer names 'total' twice"),
    "truth that is not JSON": (
        in_code("grade=grade", "grade=grade, truth=object()"),
        "truth must be a folder's Path or a JSON value",
    ),
    "variants of letters": (before_all('VARIANTS = ("paper")'), "VARIANTS is 'paper'; write a tuple of names"),
    "variant with a colon": (before_all('VARIANTS = ("a:b",)'), "'a:b' is no name for a variant"),
    "module that exits": (before_all("raise SystemExit(1)"), "scenario.py:14: does not load: SystemExit: 1"),
    "module that is no Python": (before_all("def ="), "scenario.py:14: does not load: SyntaxError: invalid syntax"),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_pack_that_cannot_be_used_is_refused_in_one_line_that_says_why(pack: Path, what: str) -> None:
    corrupt, words = UNUSABLE[what]
    corrupt(pack)
    assert words in refusal(pack)


@pytest.mark.parametrize("text", ["`gather`", "`int(x)`", "`numpy.array`", "`a b.txt`", "Write days.csv.", "`.txt`", "`x`"])
def test_what_names_no_file_may_stand_in_backticks(pack: Path, text: str) -> None:
    with (pack / "prompts" / "gather.md").open("a") as prompt:
        prompt.write(text)
    assert text in load_pack("tiny", [pack.parent]).task.subtask("gather").instructions


NAMES = st.text(max_size=6) | st.text("abz019_-/?#:. AÄ\n", max_size=6)


@given(st.lists(NAMES, max_size=3))
def test_a_name_is_a_lower_case_identifier_that_stands_once(names: list[str]) -> None:
    plain = all(name.isidentifier() and name.isascii() and name == name.lower() and name[0] != "_" for name in names)
    sound = bool(names) and plain and len(set(names)) == len(names)
    try:
        refuse_names(names, "subtask", "here")
    except PackError as error:
        assert not sound and "\n" not in str(error) and str(error).startswith("here: ")
    else:
        assert sound


NUMBERS = st.floats() | st.integers()
VALUES = st.recursive(
    NUMBERS | st.text(st.characters()) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


def finite(value: object) -> bool:
    if isinstance(value, dict | list):
        return all(map(finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answer=st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_a_reference_is_read_as_it_stands_and_only_where_a_model_could_answer_it(
    tmp_path: Path, answer: dict[str, object]
) -> None:
    (tmp_path / "reference").mkdir(exist_ok=True)
    text = json.dumps(answer)
    (tmp_path / "reference" / "answer.json").write_text(text, encoding="utf-8")
    try:
        read = PackFolder(tmp_path, "paper").reference()
    except PackError as error:
        assert "\n" not in str(error)
        assert not finite(answer) or "\\ud" in text  # half a surrogate pair
        reading = extract(text)
        assert not isinstance(reading, Extracted) or reading.value != answer
    else:
        assert read == answer
        assert extract(json.dumps(read)) == Extracted(answer, 0, len(text))
