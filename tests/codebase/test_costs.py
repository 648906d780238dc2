"""When all tests run unrecorded, since recording what a change reaches would take longer."""

from __future__ import annotations

import sys
from pathlib import Path

from repositories import impact, repository, write

from bench.codebase import ExecutionState
from bench.codebase.costs import LATEST, PATIENCE, Costs, SessionCost

TESTS = {"a": 4.0, "b": 1.0}
FIRST = SessionCost(True, 6.0, 5.0)


def test_what_takes_longer_than_all_tests_is_not_recorded() -> None:
    costs = Costs([FIRST, SessionCost(False, 2.0, 1.9)], TESTS)
    assert not costs.is_dearer(["b"])
    assert costs.is_dearer(["a"])


def test_before_all_tests_ran_unrecorded_they_are_taken_to_be_three_times_as_fast() -> None:
    assert not Costs([FIRST], TESTS).is_dearer(["b"])
    assert Costs([FIRST], TESTS).is_dearer(["a"])


def test_a_trifle_and_a_first_session_are_always_recorded() -> None:
    assert not Costs([], {}).is_dearer(["a"])
    assert not Costs([SessionCost(True, 0.3, 0.2)], {"a": 1.2}).is_dearer(["a"])


def test_after_some_unrecorded_sessions_tests_are_recorded_anew_and_ever_more_seldom_where_that_does_not_pay() -> None:
    sessions, ran = [FIRST], []
    for _ in range(4 * PATIENCE):
        recorded = not Costs(sessions, TESTS).is_dearer([*TESTS])
        sessions.append(SessionCost(recorded, 6.0 if recorded else 2.0, 2.0))
        ran.append(recorded)
    assert [at for at, recorded in enumerate(ran) if recorded] == [PATIENCE, 3 * PATIENCE + 1]


def test_it_says_in_a_line_when_it_does_not_pay() -> None:
    slow, quick = SessionCost(True, 3.0, 1.0), SessionCost(True, 0.5, 0.1)
    whole = SessionCost(False, 2.0, 1.9)
    assert Costs([FIRST, whole, *[slow] * LATEST], TESTS).verdict().endswith(": plain pytest is cheaper here")
    assert Costs([FIRST, whole, *[quick] * LATEST], TESTS).verdict().endswith("2.5 s, and all tests unrecorded 10.0 s")
    assert not Costs([FIRST, *[slow] * LATEST], TESTS).verdict()


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
    test = "import sys, time, lib\n\n\ndef test_clock():\n    time.time()\n    assert lib.value() == 1 and {}\n"
    root = repository(tmp_path, {"lib.py": lib, "test_lib.py": test.format("sys.getprofile() is None")})
    impact(root)
    assert impact(root)[0] == ["test_lib.py::test_clock PASSED"]
    write(root, {"lib.py": "def value():\n    return 2 - 1\n"})
    recorded = impact(root)[0]
    assert impact(root)[0] == ["test_lib.py::test_clock PASSED"]
    if sys.version_info < (3, 12):
        assert recorded == ["test_lib.py::test_clock FAILED"], "a profiler is set while it is recorded"
