"""The pack repairs: all fixes together turn the tests of a program, and no fewer do; its repositories are real packages."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from trials import events, matrix_of, run_all

from bench.record.events import Called
from bench.run.packs import instances_of, load_instances
from bench.run.packs.code import code_of
from bench.run.trial.verification import Rejected, judge
from bench.scenario import Json, Scenario
from scenarios.repairs.answers import TOLD
from scenarios.repairs.calls import seen
from scenarios.repairs.edits import Unfit, apply_edits, with_files
from scenarios.repairs.generate import EVERY, Repair, repair, with_bugs
from scenarios.repairs.running import ProgramTest, failures
from scenarios.repairs.schemas import Edit, WholeFile

PACK = Path(__file__).parents[2] / "scenarios" / "repairs"
ROOTS = [PACK.parent]
SHA256 = "2eac7e894f188482160ec06a286e3b9f3929fc8a14d33e2e440548ee0e8a9c3a"
"""Of all instances: documents, references, wrong answers and truths."""
MOST_TOKENS = 3000


@cache
def load(variant: str = "repair") -> tuple[Scenario, ...]:
    return load_instances(f"repairs:{variant}", ROOTS)


def outcomes(files: dict[str, str], tests: Sequence[ProgramTest]) -> dict[str, bool]:
    """Whether each test passes. The code is the pack's own, and so runs here, where it costs next to nothing."""
    results = seen(files, [test.call for test in tests])
    return {test.name: not test.failure(result) for test, result in zip(tests, results, strict=True)}


def after(made: Repair, fixed: tuple[int, ...]) -> dict[str, str]:
    """The repository once these bugs are fixed."""
    return with_bugs(made.right, made.package, [bug for at, bug in enumerate(made.bugs, 1) if at not in fixed])


def rejections(scenario: Scenario, **outputs: Json) -> list[str]:
    verdicts = judge(scenario.task.subtasks, {**scenario.reference, **outputs}, scenario.task.documents, {})
    return [f"{verdict.subtask}: {verdict.detail}" for verdict in verdicts.values() if isinstance(verdict, Rejected)]


# Instances


def test_there_are_twenty_fresh_instances_and_ten_for_development() -> None:
    assert len(instances_of("repairs", ROOTS)) == 20 and len(instances_of("repairs:repair_dev", ROOTS)) == 10
    assert not {scenario.instance for scenario in load()} & {scenario.instance for scenario in load("repair_dev")}


def test_all_instances_are_what_they_always_were_byte_for_byte() -> None:
    made = [
        [
            scenario.key,
            list(scenario.task.documents.items()),
            scenario.reference,
            [[w.name, w.why, w.outputs] for w in scenario.wrong],
            scenario.truth,
        ]
        for variant in ("repair", "repair_dev")
        for scenario in load(variant)
    ]
    assert hashlib.sha256(json.dumps(made).encode()).hexdigest() == SHA256


def test_no_two_instances_have_the_same_bugs_and_each_has_one_to_three_in_three_to_six_modules() -> None:
    every = [repair(name) for name in EVERY]
    assert len({(made.domain, *((bug.module, bug.wrong.split()[0], bug.kind) for bug in made.bugs)) for made in every}) == 30
    assert Counter(len(made.bugs) for made in every[:20]) == {1: 7, 2: 7, 3: 6}
    assert {len(made.right) for made in every} == {3, 4, 5, 6}
    assert all(len({bug.module for bug in made.bugs}) == len(made.bugs) for made in every)


@pytest.mark.parametrize("name", EVERY)
def test_a_test_of_the_whole_program_passes_with_all_fixes_and_with_no_fewer(name: str) -> None:
    made = repair(name)
    bugs = range(1, len(made.bugs) + 1)
    tests = (*made.shown, *made.hidden)
    assert len([test for test in made.hidden if "whole" in test.name]) >= 3
    for fixed in [some for size in range(len(bugs) + 1) for some in combinations(bugs, size)]:
        passed = outcomes(after(made, fixed), tests)
        assert {passed[name] for name in passed if "whole" in name} == {len(fixed) == len(bugs)}, fixed
        assert all(passed[name] for name in passed if "kept" in name), fixed
        for bug in bugs:
            its_own = [passed[name] for name in passed if name.startswith(f"test_bug_{bug}_")]
            assert its_own and all(its_own) is (bug in fixed), (fixed, bug)


def test_the_symptom_of_a_single_bug_shows_in_another_module() -> None:
    single = [made for made in map(repair, EVERY) if len(made.bugs) == 1]
    assert single
    for made in single:
        home = made.bugs[0].module
        failed = [test for test in made.shown if not outcomes(dict(made.files), [test])[test.name]]
        assert failed and all(test.call.startswith(f"{made.entry}.") and made.entry != home for test in failed), made
        failures = [test.failure(result) for test in failed for result in seen(dict(made.files), [test.call])]
        assert not [words for words in failures if f" in {made.path(home)}" in words]


@pytest.mark.parametrize("name", ["case_03", "case_05"])
def test_a_repository_on_disk_is_a_package_that_pytest_runs(name: str, tmp_path: Path) -> None:
    made = repair(name)
    made.write(tmp_path)
    tests = (*made.shown, *made.hidden)
    assert passed_by_pytest(tmp_path) == {name for name, passes in outcomes(dict(made.files), tests).items() if passes}
    for path, text in made.right.items():
        (tmp_path / path).write_text(text)
    assert passed_by_pytest(tmp_path) == {test.name for test in tests}


def passed_by_pytest(folder: Path) -> set[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rp", "--tb=no"]
    # without bytecode on disk: a module that is written again within the second, as long as before, would not be read again
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, check=False)
    return {line.split("::")[1] for line in ran.stdout.splitlines() if line.startswith("PASSED")}


# What a model is shown


def test_a_model_sees_the_visible_tests_and_how_they_fail_and_no_hidden_one() -> None:
    for scenario in load():
        made = repair(scenario.instance)
        shown = "\n".join([*scenario.task.documents.values(), *(subtask.instructions for subtask in scenario.task.subtasks)])
        assert all(f"assert {test.call} == {test.value!r}" in shown for test in made.shown)
        assert scenario.task.documents["failure.txt"].startswith("2 of 3 tests in tests/test_visible.py fail:")
        assert [test.name for test in made.hidden if test.call in shown or test.name in shown] == []


def test_the_prompt_of_one_call_has_less_than_three_thousand_tokens() -> None:
    results = run_all(matrix_of("repairs", architectures=["monolithic"]))
    assert len(results) == 20
    assert max(call.tokens_in for result in results for call in events(result, Called)) < MOST_TOKENS


def test_what_makes_and_grades_an_instance_is_no_part_of_what_is_asked() -> None:
    asked = {path.name for path in code_of(PACK, load()[0]).asked}
    assert asked == {"scenario.py", "checks.py", "calls.py", "edits.py", "names.py", "running.py", "schemas.py"}


# Verifying


def test_the_reference_is_accepted_and_the_first_visible_test_that_fails_is_said_in_a_line() -> None:
    for scenario in load():
        assert rejections(scenario) == []
    two = next(scenario for scenario in load() if len(repair(scenario.instance).bugs) == 2)
    [detail] = rejections(two, fix={"edits": two.reference["fix"]["edits"][:1]})
    test = repair(two.instance).shown[0]
    assert detail.startswith(f"fix: {test.name}: {test.call}"[:200]) and "it must return" in detail and "\n" not in detail


FILE, LINE = "a/b.py", "    return 1"
FILES = {FILE: f"def f():\n{LINE}\n\n\ndef g():\n    x = 2\n    return x\n\n\ndef h():\n    return x\n"}


def edit(find: str, replace: str, file: str = FILE) -> Edit:
    return Edit.model_validate({"file": file, "find": find, "replace": replace})


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([edit("return 1", "return 2", "c.py")], "edits[0]: there is no file c.py; the files are a/b.py"),
        ([edit("return 3", "return 2")], "edits[0]: `find` does not stand in a/b.py; copy whole lines"),
        ([edit("return x", "return 2")], "edits[0]: `find` stands 2 times in a/b.py"),
        ([edit("return", "return 2")], "edits[0]: `find` does not stand in a/b.py"),
        ([edit(" ", "return 2")], "edits[0]: `find` does not stand in a/b.py"),
        ([edit("return 1", "  return 1")], "edits[0]: `replace` is the same as `find`"),
        ([edit("x = 2", "x = 3"), edit("x = 2\nreturn x", "return 3")], "edits[1]: touches a line that another edit replaces"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_in_a_line(edits: list[Edit], words: str) -> None:
    with pytest.raises(Unfit) as refused:
        apply_edits(FILES, edits)
    assert str(refused.value).startswith(words) and "\n" not in str(refused.value)


def test_an_edit_is_put_at_the_indentation_of_its_line_in_whatever_order_edits_stand() -> None:
    edits = [edit("x = 2\nreturn x", "if True:\n    return 3"), edit("return 1", "        return 4"), edit("def h():", "")]
    edited = apply_edits(FILES, edits)[FILE]
    assert edited == "def f():\n    return 4\n\n\ndef g():\n    if True:\n        return 3\n\n\n    return x\n"
    assert apply_edits(FILES, edits[::-1])[FILE] == edited


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def f(:", "raised SyntaxError: "),
        ("1 / 0", "raised ZeroDivisionError: division by zero in a/b.py, line 1"),
        ("def f():\n    return g()\ndef g():\n    return {}['x']", "raised KeyError: 'x' in a/b.py, line 4"),
        ("def f():\n    while True: pass", "the code runs longer than 1 s"),
        ("import os\ndef f():\n    os._exit(0)", "the code ends its process"),
        ("def f():\n    open('/etc/passwd')", "the code ends its process: forbidden: open '/etc/passwd'"),
        ("def f():\n    return object()", "a result of type object, which is no JSON value"),
        ("def f():\n    return 2", "returned 2; it must return 1"),
        ("def f():\n    return True", "returned True; it must return 1"),
        ("def f():\n    return 1", ""),
    ],
)
def test_whatever_edited_code_does_is_one_line(code: str, words: str) -> None:
    [failure] = failures({FILE: code}, [ProgramTest("test_f", "b.f()", 1)])
    assert words in failure and bool(failure) is bool(words) and "\n" not in failure


@pytest.mark.parametrize(
    ("review", "words"),
    [
        ({"problems": ["f is wrong"], "approved": True}, "approved is true, and problems has 1"),
        ({"problems": [], "approved": False}, "approved is false, and problems has 0"),
    ],
)
def test_a_review_agrees_with_itself(review: dict[str, Any], words: str) -> None:
    assert any(words in rejection for rejection in rejections(load()[0], review=review))


def test_a_review_that_refuses_takes_the_fix_back() -> None:
    review = load()[0].task.subtask("review")
    assert review.finds is not None
    finding = review.finds(review.output.model_validate({"problems": ["f is\nwrong"], "approved": False}))
    assert finding and (finding.subtask, finding.reason) == ("fix", "the review refused it: f is wrong")


# Grading


def test_too_few_fixes_are_graded_by_the_bugs_that_they_fix() -> None:
    for scenario in load():
        bugs = len(repair(scenario.instance).bugs)
        for wrong in scenario.wrong:
            grade = scenario.grade_outputs({**scenario.reference, **wrong.outputs})
            assert not grade.correct and "\n" not in grade.note, wrong.name
            if wrong.name.startswith("only_"):
                fixed = wrong.name.split("_")[1:]
                assert [part for part, value in grade.parts.items() if value == 1] == [*(f"bug_{at}" for at in fixed), "kept"]
                assert grade.parts["whole"] == 0 and grade.score == pytest.approx((len(fixed) + 1) / (bugs + 2))


def test_each_instance_has_wrong_answers_of_every_kind_and_one_that_passes_its_visible_tests() -> None:
    for scenario in (*load(), *load("repair_dev")):
        bugs, names = len(repair(scenario.instance).bugs), [wrong.name for wrong in scenario.wrong]
        assert len([name for name in names if name.startswith("only_")]) == 2**bugs - 2
        assert any(name.startswith("around_") for name in names)
        assert rejections(scenario, **next(wrong.outputs for wrong in scenario.wrong if wrong.name == "by_heart")) == []


def test_suspicious_lines_turned_round_solve_less_than_three_of_ten() -> None:
    answers = [(scenario, scenario.baseline(scenario.task.documents)) for scenario in load()]
    solved = [scenario.instance for scenario, answer in answers if answer and scenario.grade_outputs(answer).correct]
    assert len(solved) < 6, solved


# A patch alone


@pytest.mark.parametrize(("variant", "field"), [("patch", "edits"), ("rewrite", "files")])
def test_a_patch_is_verified_by_all_tests_and_the_model_sees_the_first_failures(variant: str, field: str) -> None:
    for scenario in load(variant)[:3]:
        assert [subtask.name for subtask in scenario.task.subtasks] == ["fix"] and list(scenario.reference["fix"]) == [field]
        lines = scenario.task.documents["failure.txt"].splitlines()
        assert lines[0].endswith(f" of {len(scenario.truth['tests'])} tests fail:") and len(lines) == 1 + TOLD
        assert rejections(scenario) == []
        for wrong in scenario.wrong:
            assert rejections(scenario, **wrong.outputs) != [], wrong.name


def test_whole_files_take_the_place_of_those_of_their_path_and_nothing_else_changes() -> None:
    files = {"shop/a.py": "A = 1\n", "shop/b.py": "B = 1\n"}
    written = with_files(files, [WholeFile(file="shop/a.py", text="\nA = 2")])
    assert written == {"shop/a.py": "A = 2\n", "shop/b.py": "B = 1\n"}
    with pytest.raises(Unfit, match=r"there is no file tests/c\.py to change; there are shop/a\.py, shop/b\.py"):
        with_files(files, [WholeFile(file="tests/c.py", text="C = 1")])
    with pytest.raises(Unfit, match="each is as it was"):
        with_files(files, [WholeFile(file="shop/a.py", text="A = 1")])
