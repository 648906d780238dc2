"""When all tests run unrecorded, since recording what a change reaches would take longer."""

from __future__ import annotations

import sys
from pathlib import Path

from repositories import impact, repository, write

from bench_code import ExecutionState
from bench_code.costs import PATIENCE, Costs
from bench_code.record import UNRECORDED
from bench_code.store import Kept


def _session(step: int, seconds: dict[str, float], recorded: bool = True) -> list[Kept]:
    return [
        Kept(step, step, 0.0, "test", name, "passed", "", took, "" if recorded else UNRECORDED)
        for name, took in seconds.items()
    ]


FIRST = _session(1, {"a": 4.0, "b": 1.0})


def test_what_takes_longer_than_all_tests_is_not_recorded() -> None:
    costs = Costs([*FIRST, *_session(2, {"a": 1.9, "b": 0.1}, recorded=False)])
    assert not costs.is_cheaper_unrecorded(["b"])
    assert costs.is_cheaper_unrecorded(["a"])


def test_a_test_that_never_ran_unrecorded_is_taken_to_be_three_times_as_fast() -> None:
    assert not Costs(FIRST).is_cheaper_unrecorded(["b"])
    assert Costs(FIRST).is_cheaper_unrecorded(["a"])
    assert not Costs([*FIRST, *_session(2, {"a": 3.5}, recorded=False)]).is_cheaper_unrecorded(["a"])


def test_a_trifle_and_a_first_session_are_always_recorded() -> None:
    assert not Costs([]).is_cheaper_unrecorded(["a"])
    assert not Costs(_session(1, {"a": 1.2})).is_cheaper_unrecorded(["a"])


def test_after_some_unrecorded_sessions_tests_are_recorded_anew_and_ever_more_seldom() -> None:
    executions, ran = [*FIRST], []
    for step in range(2, 40):
        recorded = not Costs(executions).is_cheaper_unrecorded(["a", "b", "deleted"])
        executions += _session(step, {"a": 4.0, "b": 1.0} if recorded else {"a": 1.9, "b": 0.1}, recorded)
        ran.append(recorded)
    assert [at for at, recorded in enumerate(ran) if recorded] == [
        PATIENCE,
        2 * PATIENCE + 1,
        4 * PATIENCE + 2,
        8 * PATIENCE + 3,
    ]


def test_sessions_of_a_few_tests_do_not_put_off_when_the_others_are_recorded_anew() -> None:
    executions = [*FIRST, *_session(1, {"c": 4.0})]
    for step in range(2, 2 + 2 * PATIENCE, 2):
        executions += _session(step, {"a": 1.9, "b": 0.1, "c": 1.9}, recorded=False)
        assert Costs(executions).is_cheaper_unrecorded(["a", "b", "c"]) == (step < 2 * PATIENCE)
        executions += _session(step + 1, {"b": 1.0})


def test_an_edit_that_reaches_all_tests_runs_them_unrecorded_and_keeps_what_was_recorded(tmp_path: Path) -> None:
    lib = "import os\n\n\ndef wait(by=1):\n    os.sched_yield()\n    return by\n"
    test = "import lib, select\n" + "\n\n".join(
        f"def test_{each}():\n    select.select([], [], [], 0.7)\n    assert lib.wait() == 1\n" for each in "abc"
    )
    root = repository(tmp_path, {"lib.py": lib, "test_lib.py": test})
    impact(root)
    write(root, {"lib.py": lib.replace("return by", "return by + 1")})
    ran, _, printed = impact(root)
    assert ran == [f"test_lib.py::test_{each} FAILED" for each in "abc"]
    assert "all 3 tests ran unrecorded" in printed
    state = ExecutionState.open(root)
    assert state.executions("test_lib.py::test_a")[-1].outcome == "failed"
    assert len(state.invalid()) == 3
    write(root, {"lib.py": lib})
    assert impact(root)[:2] == ([], 3)
    assert state.why("test_lib.py::test_a") == []


def test_a_test_that_is_never_kept_runs_without_the_profiler_until_its_code_changes(tmp_path: Path) -> None:
    lib = "def value():\n    return 1\n"
    test = "import pytest, sys, time, lib\n\n\ndef test_clock():\n    time.time()\n    assert lib.value() == 1\n"
    test += "    if sys.getprofile() is not None:\n        pytest.skip('it is profiled')\n"
    root = repository(tmp_path, {"lib.py": lib, "test_lib.py": test})
    impact(root)
    assert impact(root)[0] == ["test_lib.py::test_clock PASSED"]
    write(root, {"lib.py": "def value():\n    return 2 - 1\n"})
    recorded = impact(root)[0]
    assert impact(root)[0] == ["test_lib.py::test_clock PASSED"]
    if sys.version_info < (3, 12):
        assert recorded == ["test_lib.py::test_clock SKIPPED"], "a profiler is set while it is recorded"
