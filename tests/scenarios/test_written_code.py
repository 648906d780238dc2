"""The variants of service_upgrade in which a model writes the code: what is written is bounded, runs in the sandbox, and is
judged by what it does."""

from __future__ import annotations

import ast
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import matrix_of, run_all
from upgrade_worlds import harm, world_of

from bench.run.packs import instances_of, load_pack
from bench.worlds.run.environment import World, final_world
from scenarios.service_upgrade.course import follow
from scenarios.service_upgrade.expected import base_files
from scenarios.service_upgrade.grader import grade
from scenarios.service_upgrade.in_sandbox import failing_tests, is_right_line, mutation_score
from scenarios.service_upgrade.offered import right_test, with_test
from scenarios.service_upgrade.processes import RUN
from scenarios.service_upgrade.repository import module_text
from scenarios.service_upgrade.story import case_of
from scenarios.service_upgrade.trees import mistaken, tells, upgraded
from scenarios.service_upgrade.written import LONGEST_LINE, LONGEST_TEST, Unfit, asserts_of, line_of, mutants_of

ROOTS = [Path(__file__).parents[2] / "scenarios"]
CHANGES = [f"written_{number:02}" for number in range(1, 7)]
needs_ruff = pytest.mark.skipif(find_spec("ruff") is None, reason="no result of the lint is kept for lines that are written")
TESTS = [f"proof_{number:02}" for number in range(1, 7)]
VARIANT = {"adapt": ":write_change", "write_test": ":write_test"}
STATE_MACHINE = {"state_machine_remedied": {"base": "state_machine", "remedies": True}}


def test_each_variant_has_six_cases() -> None:
    assert instances_of("service_upgrade:write_change", ROOTS) == tuple(CHANGES)
    assert instances_of("service_upgrade:write_test", ROOTS) == tuple(TESTS)


# What may be written


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("row['a'] +", "no Python"),
        ("a = 1", "no Python"),
        ("lambda: 1", "Lambda"),
        ("[x for x in row]", "ListComp"),
        ("9 ** 9 ** 9", "Pow"),
        ("().__class__", "__class__"),
        ("__import__('os')", "__import__"),
        ("1\n+ 2", "one expression"),
        ("1" + " + 1" * 39, "more than"),
        ("1" * (LONGEST_LINE + 1), "at most"),
    ],
)
def test_a_line_that_is_no_small_expression_is_refused_with_why(line: str, why: str) -> None:
    with pytest.raises(Unfit, match=why.replace("(", r"\(")):
        line_of(line)


@pytest.mark.parametrize(
    "test",
    [
        "",
        "import os",
        "assert answer(ROWS, 1)",
        "assert answer(ROWS, 1) == row",
        "assert answer(ROWS, '1') == 1",
        "assert answer([1], 1) == 1",
        "assert answer([{1: []}], 1) == 1",
        "assert other(ROWS, 1) == 1",
        "assert answer(ROWS, 1) == 1, open('a')",
        "assert answer(*ROWS) == 1",
        "assert answer(ROWS, 1) == {[]: 1}",
        "assert answer(ROWS, 1) == 1\n" * 7,
        "assert answer(ROWS, 1) == 1" + " " * LONGEST_TEST,
    ],
)
def test_a_test_that_is_not_a_few_asserts_of_literals_is_refused(test: str) -> None:
    with pytest.raises(Unfit):
        asserts_of(test)


def test_asserts_are_read_as_they_were_written_and_each_stands_once() -> None:
    first, second = "assert answer(ROWS, 3) == [1, 2]", "assert answer([{'id': 1}], 1) is None"
    made = [each.text for each in asserts_of(f"{first}\n{second}\n{first}")]
    assert made == [first, second.replace("is", "==")]


@given(st.text(alphabet="assert answer(ROWS,123)=[]{}'\n #\\:\0é_*", max_size=200))
def test_whatever_is_written_is_read_or_refused_and_what_is_read_is_read_again(text: str) -> None:
    for read, written in ((line_of, str), (asserts_of, lambda made: "\n".join(each.text for each in made))):
        try:
            once = written(read(text))
        except Unfit as error:
            assert "\n" not in str(error)
        else:
            assert written(read(once)) == once


# What is right


@needs_ruff
@pytest.mark.parametrize("instance", [*CHANGES, *TESTS])
def test_the_right_course_does_no_harm_and_each_wrong_one_does(instance: str) -> None:
    declared = world_of(instance)
    with closing(World(declared)) as world:
        follow(case_of(instance), {}, world)
        assert harm(world) == {}
    for course in [name for name in declared.wrong if name.startswith(("module", "passes", "holds", "fails"))]:
        with closing(World(declared)) as world:
            declared.wrong[course](world)
            assert harm(world), course


@needs_ruff
def test_a_line_in_other_words_is_right_if_it_answers_alike_and_main_is_then_right_too() -> None:
    case = case_of("written_01")
    module = case.modules[0]
    otherwise = f"({module.right}) + 0"
    assert is_right_line(case, module, otherwise) and not any(is_right_line(case, module, line) for line in module.wrong)
    with closing(World(world_of(case.name))) as world:
        follow(case, {f"adapt {module.name}": {"rewrite": otherwise}}, world)
        assert harm(world) == {}
        truth = load_pack("service_upgrade:write_change", ROOTS, case.name).truth
        assert truth is not None and grade(final_world(world.snapshot().content), truth).correct


def test_the_sandbox_finds_what_pytest_finds() -> None:
    case = case_of("proof_03")
    test = right_test(case)
    for files in (with_test(case, mistaken(case), test), with_test(case, upgraded(case), test), base_files(case)):
        assert sorted(failing_tests(case, files, 1)) == sorted(RUN["tests"](case, files, 1))


def test_what_a_model_wrote_reaches_nothing_outside_of_the_sandbox(tmp_path: Path) -> None:
    case = case_of("written_01")
    made = tmp_path / "made"
    files = upgraded(case)
    spoiled = {**files, f"{case.modules[0].name}.py": f"open({str(made)!r}, 'w')\ndef answer(rows, order): return None\n"}
    assert list(failing_tests(case, spoiled, 1)) and not made.exists()


# Mutants


def test_a_mutant_differs_from_the_module_in_one_place_and_can_be_read() -> None:
    case = case_of("proof_01")
    text = module_text(case, case.modules[0], case.modules[0].right)
    mutants = mutants_of(text)
    assert len(mutants) >= 3 and len(set(mutants)) == len(mutants)
    for mutant in mutants:
        assert mutant != ast.unparse(ast.parse(text)) and ast.parse(mutant)


def test_a_test_of_more_orders_kills_no_fewer_mutants_and_a_test_that_fails_on_what_is_right_kills_none() -> None:
    for case in map(case_of, TESTS):
        test = right_test(case)
        killed, mutants = mutation_score(case, test)
        fewer, same = mutation_score(case, test.splitlines()[0])
        assert 0 < fewer <= killed <= mutants == same
        assert mutation_score(case, f"{test}\nassert answer(ROWS, 99) == 'no answer'") == (0, mutants)
        assert tells(case, test) and not tells(case, "assert answer(ROWS, 99) == 'no answer'")


# Trials


@needs_ruff
@pytest.mark.parametrize(("instance", "subtask"), [("written_01", "adapt"), ("proof_01", "write_test")])
def test_a_simulated_model_solves_a_case_and_wrong_code_in_its_place_does_not_pass(instance: str, subtask: str) -> None:
    wrong = [{"point": "output", "effect": "wrong_value", "subtask": subtask, "attempts": [1]}]
    arms: dict[str, Any] = {"architectures": list(STATE_MACHINE), "architecture": STATE_MACHINE}
    matrix = matrix_of(f"service_upgrade{VARIANT[subtask]}/{instance}", {"none": [], "wrong": wrong}, **arms)
    records = {result.record.plan: result.record for result in run_all(matrix)}
    assert records["none"].outcome == "solved" and records["wrong"].outcome == "wrong"
    parts = records["none"].grade.parts if records["none"].grade else {}
    assert ("mutants_killed" in parts) == (instance == "proof_01")
