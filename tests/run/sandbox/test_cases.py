"""A function on cases: what came of each is told apart, in one line, and nothing of it is taken on the code's word."""

from __future__ import annotations

import json

import pytest
from cost import processor_time

from bench.run.sandbox.cases import Case, CaseOutcome, run_cases, same
from bench.scenario import Json

DOUBLE = [Case((2,), 4), Case((3,), 6)]


def test_each_case_has_its_own_outcome() -> None:
    code = "def double(x):\n    return 1 / (x - 3) and 4"
    right, raised = run_cases(code, "double", DOUBLE)
    assert right == CaseOutcome("right")
    assert raised == CaseOutcome("exception", "double(3) raised ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("def double(x):\n    return x * x", "wrong value", "double(3) returned 9; it must return 6"),
        ("def double(x):\n    return {x}", "exception", "double(3) raised a result of type set, which is no JSON value"),
        ("def double(x: return x", "syntax", "the code is no valid Python: line 1: "),
        ("x = '\0'", "syntax", "the code is no valid Python: "),
        ("def half(x):\n    return x", "no function", "the code defines no function double"),
        ("", "no function", "the code defines no function double"),
        ("import nowhere", "exception", "the code fails before it is called: ModuleNotFoundError: No module named 'nowhere'"),
        ("def double(x):\n    raise SystemExit(0)", "exception", "the code ends its process: raised SystemExit: 0"),
        ("def double(x):\n    open('/etc/passwd')", "exception", "the code ends its process: forbidden: open"),
        ("import __main__\nclass Same(str):\n    __eq__ = lambda *_: True\ndouble = Same", "wrong value", "returned '3'"),
    ],
)
def test_what_went_wrong_is_told_apart_in_one_line(code: str, kind: str, words: str) -> None:
    last = run_cases(code, "double", DOUBLE)[-1]
    assert last.kind == kind and words in last.words and "\n" not in last.words


def test_code_that_is_endless_to_compile_costs_this_process_nothing() -> None:
    nested = [f"{' ' * depth}{word}" for depth in range(19) for word in ("try: pass", "finally:")]
    with processor_time(at_most=1):
        [outcome] = run_cases("\n".join([*nested, " " * 19 + "x = 1"]), "x", DOUBLE[:1])
    assert outcome.kind in ("time limit", "syntax", "exception")


def test_what_code_says_is_one_line_of_letters_and_short() -> None:
    code = "def double(x):\n    raise ValueError('\\x1b[2J' + chr(0xd800) + 'long' * 1000)"
    [outcome] = run_cases(code, "double", DOUBLE[:1])
    assert outcome.words.isprintable() and len(outcome.words) < 400
    assert outcome.words.startswith("double(2) raised ValueError: \\x1b[2J\\ud800long")


@pytest.mark.parametrize("levels", [70, 900, 980])
def test_a_result_that_is_nested_too_deeply_is_no_value_whoever_reads_it(levels: int) -> None:
    code = f"def double(x):\n    for _ in range({levels}):\n        x = [x]\n    return x"
    [outcome] = run_cases(code, "double", DOUBLE[:1])
    assert outcome.kind == "exception"


def test_code_of_megabytes_is_not_parsed() -> None:
    [outcome] = run_cases("x = 1\n" * 2**20, "x", DOUBLE[:1])
    assert outcome.kind == "syntax" and "6,291,456 characters, and may have 65,536" in outcome.words


def test_a_function_that_never_comes_back_is_stopped() -> None:
    outcomes = run_cases("def double(x):\n    while True: pass", "double", DOUBLE)
    assert outcomes == [CaseOutcome("time limit", "the code runs longer than 1 s")] * 2


def test_what_a_function_does_to_its_arguments_reaches_no_other_case() -> None:
    cases = [Case(([1, 2],), 1), Case(([1, 2],), 1)]
    assert {run_case.kind for run_case in run_cases("def first(x):\n    return x.pop(0)", "first", cases)} == {"right"}


def test_long_values_are_cut() -> None:
    [outcome] = run_cases("def long(x):\n    return x * 1000", "long", [Case(("ab",), "")])
    assert len(outcome.words) < 400


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (0.1 + 0.2, 0.3, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ("1", 1, False),
        ([1], [1, 2], False),
        ({"a": [1.0]}, {"a": [1]}, True),
        ({"a": 1}, {"b": 1}, False),
        (float("nan"), 0.0, False),
        pytest.param(10**400, 0.5, False, id="too large for a float"),
        pytest.param(10**400, float("inf"), False, id="infinite"),
        pytest.param(10**400, 10**400, True, id="large"),
    ],
)
def test_numbers_are_the_same_by_their_value_and_nothing_else_is(left: Json, right: Json, equal: bool) -> None:
    assert same(left, right) == same(right, left) == equal
    assert same(json.loads(json.dumps(right)), right) == (right == right)
