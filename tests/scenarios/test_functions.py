"""The pack functions: references pass all tests, each wrong solution fails one, and one-liners solve few problems."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.run.answers import fenced
from bench.run.packs import load_instances, load_pack, variants_of
from bench.run.sandbox.cases import Case, same
from bench.run.trial.verification import Rejected, judge
from bench.scenario import Grade, Json, Scenario, schema_of
from scenarios.functions.problems import Problem, problems
from scenarios.functions.written import cases_of

PACK = Path(__file__).parents[2] / "scenarios" / "functions"
ROOTS = [PACK.parent]
LEVELS = ("easy", "medium", "hard")
PROBLEMS = {f"{level}/{name}": problem for level in LEVELS for name, problem in problems(level).items()}


@cache
def load(level: str) -> tuple[Scenario, ...]:
    return load_instances(f"functions:{level}", ROOTS)


def cases(problem: Problem, *, hidden: bool) -> tuple[Case, ...]:
    return cases_of(problem.tests if hidden else problem.examples).cases


def passes(code: str, problem: Problem, *, hidden: bool) -> bool:
    """Whether code of the pack's own passes. It is ours and trusted, and so runs here, where it costs next to nothing."""
    space: dict[str, Any] = {}
    exec(code, space)
    function: Callable[..., Any] = space[cases_of(problem.tests).function]
    return all(returns(function, case) for case in cases(problem, hidden=hidden))


def returns(function: Callable[..., Any], case: Case) -> bool:
    try:
        return same(json.loads(json.dumps(function(*json.loads(json.dumps(case.arguments))))), case.expected)
    except Exception:
        return False


# The problems


def test_there_are_sixteen_problems_a_level_and_no_name_twice() -> None:
    assert {level: len(problems(level)) for level in LEVELS} == dict.fromkeys(LEVELS, 16)
    assert len({name for level in LEVELS for name in problems(level)}) == 48
    assert set(variants_of(PACK)) == set(LEVELS)


def test_the_reference_passes_examples_and_tests_and_each_wrong_solution_fails_a_test() -> None:
    for which, problem in PROBLEMS.items():
        assert passes(problem.solution, problem, hidden=False) and passes(problem.solution, problem, hidden=True), which
        assert len(problem.wrong) >= 2, which
        assert [name for name, answer in problem.wrong.items() if passes(answer["code"], problem, hidden=True)] == [], which


def test_a_wrong_solution_passes_the_examples_so_that_only_hidden_tests_find_it() -> None:
    for which, problem in PROBLEMS.items():
        assert any(passes(answer["code"], problem, hidden=False) for answer in problem.wrong.values()), which


def test_a_problem_shows_two_examples_or_three_and_hides_eight_tests_or_more() -> None:
    for which, problem in PROBLEMS.items():
        shown, hidden = ([repr(case.arguments) for case in cases(problem, hidden=hidden)] for hidden in (False, True))
        assert 2 <= len(shown) <= 3 and len(hidden) >= 8, which
        assert len({*shown, *hidden}) == len(shown) + len(hidden), f"{which}: a call appears twice"


def test_signature_solutions_and_calls_agree() -> None:
    for which, problem in PROBLEMS.items():
        name, parameters = called(problem.signature + ": ...")
        assert called(problem.solution, name) == (name, parameters), which
        assert problem.signature in problem.solution, which
        for text in (problem.examples, problem.tests):
            calls = cases_of(text)
            assert calls.function == name and {len(case.arguments) for case in calls.cases} == {len(parameters)}, which


def called(code: str, name: str = "") -> tuple[str, list[str]]:
    """The name of the function that code defines, and its parameters."""
    functions = [
        node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef) and node.name in (name or node.name,)
    ]
    return functions[0].name, [arg.arg for arg in functions[0].args.args]


def test_a_specification_names_every_parameter() -> None:
    for which, problem in PROBLEMS.items():
        _, parameters = called(problem.signature + ": ...")
        assert [name for name in parameters if f"`{name}`" not in problem.specification] == [], which


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_sees_signature_specification_and_examples_and_no_hidden_test(level: str) -> None:
    for scenario in load(level):
        problem = problems(level)[scenario.instance]
        shown = "\n".join([*scenario.task.documents.values(), *(subtask.instructions for subtask in scenario.task.subtasks)])
        assert problem.signature in shown and problem.examples.strip() in shown
        assert [line for line in problem.tests.split("\n") if line and line in shown] == []
        assert scenario.task.answer_names == ("code",)


def test_one_liners_that_fit_the_examples_solve_less_than_three_of_ten_and_less_at_each_level() -> None:
    solved = []
    for level in LEVELS:
        answers = {scenario.instance: scenario.baseline(scenario.task.documents)["code"]["code"] for scenario in load(level)}
        solved.append(sum(passes(code, problems(level)[name], hidden=True) for name, code in answers.items()))
    assert 0.3 * 16 > solved[0] > solved[1] >= solved[2]


def test_specifications_are_longer_at_each_level() -> None:
    lengths = [sum(len(problem.specification) for problem in problems(level).values()) for level in LEVELS]
    assert lengths == sorted(lengths)


# Verifier and grader, in the sandbox

SCENARIO = load_pack("functions:easy", ROOTS, "count_failed")


def rejection(code: str) -> Rejected | None:
    outputs = {**SCENARIO.reference, "code": {"code": code}}
    verdict = judge(SCENARIO.task.subtasks, outputs, SCENARIO.task.documents, {})["code"]
    return verdict if isinstance(verdict, Rejected) else None


def graded(code: str) -> Grade:
    return SCENARIO.grade_outputs({"code": {"code": code}})


STAGES = ["parses", "defines", "ends", "returns", "passes"]
FUNCTION = "def count_failed(codes):\n    "


@pytest.mark.parametrize(
    ("code", "reached", "note"),
    [
        ("def count_failed(codes", "", "syntax: the code is no valid Python"),
        ("def other(codes): pass", "parses", "no function: the code defines no function count_failed"),
        (f"{FUNCTION}raise SystemExit", "ends", "exception: the code ends its process"),
        (f"{FUNCTION}return max(codes)", "ends", "exception: count_failed([]) raised ValueError"),
        (f"{FUNCTION}return 2", "returns", "wrong value: count_failed([]) returned 2; it must return 0 (7 of 8 tests fail)"),
    ],
)
def test_what_a_test_finds_is_told_by_its_kind_and_its_stage(code: str, reached: str, note: str) -> None:
    grade = graded(code)
    assert not grade.correct and note in grade.note
    assert [name for name in STAGES if grade.parts[name]] == STAGES[: STAGES.index(reached) + 1 if reached else 0]


def test_the_score_is_the_share_of_hidden_tests_that_pass() -> None:
    assert graded(SCENARIO.reference["code"]["code"]) == Grade(True, 1.0, dict.fromkeys(STAGES, 1.0), "")
    assert graded(SCENARIO.wrong_outputs["code"][0]["code"]).score == 6 / 8


def test_code_that_fails_an_example_is_rejected_with_the_call_and_the_two_values() -> None:
    assert rejection(SCENARIO.reference["code"]["code"]) is None
    rejected = rejection(f"{FUNCTION}return len(codes)")
    assert rejected is not None and rejected.reason == "check"
    assert rejected.detail == "wrong value: count_failed([200, 500, 404, 503]) returned 4; it must return 2"


def test_code_that_knows_the_examples_alone_passes_them_and_solves_nothing() -> None:
    code = f"{FUNCTION}return 2 if 500 in codes else 0"
    assert rejection(code) is None and not graded(code).correct


def test_the_code_stands_in_a_block_alone_where_the_format_has_blocks() -> None:
    written = fenced.write_answer(SCENARIO.reference["code"], schema_of(SCENARIO.task.subtask("code").output))
    assert written.value == {} and list(written.blocks) == ["code"]


# How cases are written

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.tuples(st.lists(plain, max_size=3), plain), min_size=1, max_size=3))
def test_cases_are_read_as_they_are_written(written: list[tuple[list[Json], Json]]) -> None:
    text = "\n".join(f"f({', '.join(map(repr, arguments))}) == {expected!r}" for arguments, expected in written)
    assert cases_of(text).cases == tuple(Case(tuple(arguments), expected) for arguments, expected in written)


@pytest.mark.parametrize(
    "text", ["", "f(1)", "f(1) == 2 == 2", "f(x=1) == 2", "f(1) < 2", "f(g(1)) == 2", "f(1) == 1\ng(1) == 1", "f("]
)
def test_a_line_that_is_no_case_is_refused(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        cases_of(text)
