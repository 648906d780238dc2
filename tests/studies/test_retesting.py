"""The arms of retesting: what each believes after a patch, on a repository small enough to follow by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from repositories import impact, repository, write
from trials import ROOTS

from bench.run.packs import load_pack
from bench_code import ExecutionState
from studies.retesting.patch_loop.arms import ARMS, RetestArm
from studies.retesting.patch_loop.case import LineChange, RepairCase, case_of
from studies.retesting.patch_loop.loop import run_loop
from studies.retesting.patch_loop.program import imported_by
from studies.retesting.patch_loop.recorded import RecordedPatch, replayed
from studies.retesting.patch_loop.results import DISRUPTIONS
from studies.retesting.patch_loop.suite import CallTest, Suite

FILES = {
    "shop/rates.py": "RATE = 2\n\n\ndef price(count):\n    return count + RATE\n\n\ndef unused():\n    return 0\n",
    "shop/bill.py": "from .rates import price\n\n\ndef bill(count):\n    return price(count)\n",
    "shop/report.py": "from . import bill\n\n\ndef report(count):\n    return str(bill.bill(count))\n\n\n"
    "def title(name):\n    return name\n",
}
TESTS = [
    CallTest("price", "rates.price(3)", 6),
    CallTest("report", "report.report(3)", "6"),
    CallTest("title", "report.title('a')", "a"),
]
FIX = LineChange("shop/rates.py", "return count + RATE", "return count * RATE")
SLIP = LineChange("shop/report.py", "return name", "return name * 2")
ARM = {arm.name: arm for arm in ARMS}


def case(*slips: LineChange) -> RepairCase:
    return RepairCase("small", FILES, (FIX,), slips, Suite(TESTS))


def trusted(arm: RetestArm, change: LineChange) -> list[str]:
    """The tests that an arm believes to pass after a change of the right files, each of which passed before."""
    made = case()
    before = made.suite.run(made.right).results
    assert all(result.passed for result in before.values())
    after = dict(made.right)
    assert after[change.file].count(change.find) == 1
    after[change.file] = after[change.file].replace(change.find, change.replace)
    return [name for name, result in before.items() if arm.trusts([result], made.suite.run(after).version)]


def test_a_result_depends_on_the_bodies_that_ran_and_on_the_skeletons_of_what_is_imported() -> None:
    made = case()
    recorded = made.suite.run(made.broken).results["report"].recorded
    assert {(fact.kind, fact.name) for fact in recorded} == {
        *(("body", name) for name in ("shop/report.py::report", "shop/bill.py::bill", "shop/rates.py::price")),
        *(("skeleton", path) for path in FILES),
    }


def test_imports_are_read_relative_and_absolute() -> None:
    assert imported_by("shop/report.py", FILES["shop/report.py"], FILES) == {"shop/bill.py"}
    assert imported_by("shop/x.py", "import shop.bill\nfrom shop import rates\nimport os\n", FILES) == {
        "shop/bill.py",
        "shop/rates.py",
    }


def test_a_change_two_imports_away_is_missed_by_what_is_declared_and_not_by_what_was_recorded() -> None:
    wrong = LineChange("shop/rates.py", "return count * RATE", "return count - RATE")
    believed = {name: trusted(arm, wrong) for name, arm in ARM.items()}
    assert believed == {
        "regenerate": [],
        "rerun_everything": [],
        "notebook": ["price", "report", "title"],
        "declared": ["report", "title"],
        "selective": ["title"],
    }


def test_code_that_did_not_run_and_a_constant_are_told_apart() -> None:
    assert trusted(ARM["selective"], LineChange("shop/rates.py", "return 0", "return 1")) == ["price", "report", "title"]
    assert (
        trusted(ARM["selective"], LineChange("shop/rates.py", "RATE = 2", "RATE = 3")) == []
    )  # report.py imports it in the end


def test_a_version_runs_once_whichever_arm_comes_to_it() -> None:
    made = case()
    for arm in ARMS:
        assert run_loop(made, arm, "none", 1).outcome == "solved"
    assert made.suite.runs == 2  # broken, right


def test_code_that_cannot_be_imported_fails_the_tests_that_need_it_and_they_depend_on_all_files() -> None:
    files = {**FILES, "shop/bill.py": "raise ValueError\n"}
    results = Suite([*TESTS, CallTest("unused", "rates.unused()", 0)]).run(files).results
    assert [name for name, result in results.items() if result.passed] == ["unused"]
    assert {fact.name for fact in results["title"].recorded if fact.kind == "file"} == set(FILES)


def test_a_stale_cache_ends_the_notebook_at_once_and_costs_the_others_nothing_but_runs() -> None:
    notebook = run_loop(case(), ARM["notebook"], "stale_cache", 1)
    assert (notebook.outcome, notebook.executions, notebook.believed, notebook.wrong) == ("wrong", 0, 3, 2)
    selective = run_loop(case(), ARM["selective"], "stale_cache", 1)
    assert (selective.outcome, selective.wrong) == ("solved", 0)
    assert selective.executions < run_loop(case(), ARM["rerun_everything"], "stale_cache", 1).executions


def test_a_lost_result_is_one_run_more() -> None:
    runs = {each: run_loop(case(), ARM["rerun_everything"], each, 3) for each in ("none", "lost_result")}
    assert runs["lost_result"].executions == runs["none"].executions + runs["lost_result"].struck


def test_of_half_a_patch_of_one_line_nothing_arrives_and_the_next_patch_mends_it() -> None:
    seeds = [run_loop(case(), ARM["selective"], "half_patch", seed) for seed in range(12)]
    struck = [result for result in seeds if result.struck]
    assert struck and all(result.outcome == "solved" and result.patches >= 2 for result in struck)


def test_regenerating_differs_from_rerunning_in_tokens_alone() -> None:
    for disruption in DISRUPTIONS:
        whole, edits = (run_loop(case(SLIP), ARM[name], disruption, 5) for name in ("regenerate", "rerun_everything"))
        assert (whole.executions, whole.outcome, whole.patches) == (edits.executions, edits.outcome, edits.patches)
        assert whole.tokens > edits.tokens


@pytest.mark.parametrize("instance", ["many_003", "many_009"])
def test_what_was_recorded_is_never_wrong_where_no_result_was(instance: str) -> None:
    made = case_of(load_pack("repairs:repair_many", [Path(ROOTS[0])], instance), 1)
    assert all(result.passed for result in made.suite.run(made.right).results.values())
    for disruption in ("none", "lost_result", "stale_cache", "half_patch"):
        selective = run_loop(made, ARM["selective"], disruption, 1)
        everything = run_loop(made, ARM["rerun_everything"], disruption, 1)
        assert (selective.wrong, selective.outcome) == (0, everything.outcome)


def test_bench_code_runs_again_what_the_arm_runs_again(tmp_path: Path) -> None:
    """The same repository on disk, under git and pytest: its execution state invalidates the same tests."""
    lines = [f"def test_{test.name}():\n    assert {test.call} == {test.value!r}\n" for test in TESTS]
    tests = "\n\n".join(["from shop import rates, report\n", *lines])
    right = dict(case().right)
    root = repository(tmp_path / "shop", {**right, "shop/__init__.py": "", "conftest.py": "", "tests/test_shop.py": tests})
    impact(root)
    for change in (
        LineChange("shop/rates.py", "return count * RATE", "return count - RATE"),
        LineChange("shop/report.py", "return name", "return name * 2"),
        LineChange("shop/rates.py", "return 0", "return 1"),
    ):
        write(root, {change.file: right[change.file].replace(change.find, change.replace)})
        again = {name.rpartition("::test_")[2] for name in ExecutionState.open(root).invalid()}
        assert again == {test.name for test in TESTS} - set(trusted(ARM["selective"], change))
        write(root, right)


# Patches that a model wrote

MENDED = {**FILES, "shop/rates.py": FILES["shop/rates.py"].replace("count + RATE", "count * RATE")}
WORSE = {**FILES, "shop/report.py": FILES["shop/report.py"].replace("return name", "return name * 2")}
ENDLESS = {**FILES, "shop/rates.py": "while True:\n    pass\n"}
UNREADABLE = {**FILES, "shop/rates.py": "def price(:\n"}


def follow(arm: str, *patches: dict[str, str] | None) -> tuple[str, int, int, int, int, int]:
    case = replayed("small", Suite(TESTS), FILES, [RecordedPatch(files, 10) for files in patches], ARM[arm])
    return case.outcome, case.patches, case.fitting, case.executions, case.believed, case.wrong


def test_an_arm_runs_what_it_does_not_believe_and_hands_in_once_all_passes() -> None:
    assert follow("rerun_everything", None, WORSE, MENDED, WORSE) == ("solved", 3, 2, 9, 0, 0)
    # title passed in the broken repository: its code is another in WORSE alone
    assert follow("selective", None, WORSE, MENDED, WORSE) == ("solved", 3, 2, 8, 1, 0)
    assert follow("notebook", None, WORSE, MENDED) == ("solved", 3, 2, 7, 2, 1)


def test_a_model_that_writes_no_patch_that_fits_costs_the_tests_of_the_broken_repository() -> None:
    assert follow("selective", None, None) == ("gave_up", 2, 0, 3, 0, 0)


def test_code_that_never_ends_or_cannot_be_read_fails_all_tests_and_no_result_of_before_is_believed() -> None:
    for files in (ENDLESS, UNREADABLE):
        assert follow("selective", files) == ("gave_up", 1, 1, 6, 0, 0)
