"""Repositories and tests that something is wrong with: one line each, and nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from repositories import MONEY, git, impact, repository, write

from bench_code import Edit, ExecutionState
from bench_code.git import CodeError


def test_the_files_of_a_submodule_are_followed(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"inside.py": "VALUE = 1\n"})
    test = "import sys\nsys.path.append('sub')\nimport inside\ndef test_it(): assert inside.VALUE == 1\n"
    root = repository(tmp_path / "outer", MONEY | {"test_sub.py": test})
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    impact(root)
    write(root, {"sub/inside.py": "VALUE = 2\n"})
    ran, kept, _ = impact(root)
    assert ("test_sub.py::test_it FAILED" in ran, kept) == (True, 0)


def test_a_repository_without_tests_and_one_that_does_not_parse_are_told_by_pytest(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.py": "A = 1\n"})
    assert "bench: step 1: 0 tests run, 0 results kept" in impact(root)[2]
    write(root, {"test_a.py": "def test_a(:\n"})
    printed = impact(root)[2]
    assert "SyntaxError" in printed
    assert "INTERNALERROR" not in printed


def test_a_test_that_never_ends_is_ended_and_what_was_complete_is_kept(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    endless = ("import pathlib, threading\ndef test_endless():\n"
               f"    pathlib.Path({str(begun)!r}).touch()\n    while True:\n        threading.Event().wait(1)\n")  # fmt: skip
    root = repository(tmp_path / "repository", MONEY | {"test_z.py": endless})
    command = ("import signal, sys; from bench_code import ExecutionState\n"
               "signal.signal(signal.SIGINT, signal.SIG_IGN)  # as below nohup\n"
               "ExecutionState.open(sys.argv[1]).run(['-q'], limit=float(sys.argv[2]))")  # fmt: skip
    for limit in (10, 40, 160, 640):  # a busy machine may take long until the endless test begins
        words = (sys.executable, "-c", command, str(root), str(limit))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if begun.exists():
            break
    assert done.stderr.splitlines()[-1].endswith(f"not done after {limit} s, and ended; what was complete by then is kept")
    kept = [execution.name for execution in ExecutionState.open(root).executions()]
    assert kept == ["test_money.py::test_total", "test_names.py::test_greet"]


def test_an_interrupt_before_the_session_begins_shows_no_traceback(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    waits = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(600)\n"
    root = repository(tmp_path / "r", MONEY | {"conftest.py": waits})
    command = (sys.executable, "-m", "bench", "code", "run", "--in", str(root))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        while not begun.exists() and running.poll() is None:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        printed, _ = running.communicate()
    assert begun.exists() and running.returncode != 0
    assert "Traceback" not in printed and "KeyboardInterrupt" not in printed and len(printed.splitlines()) <= 1, printed


def test_an_interrupted_session_keeps_what_has_ended_before_pytest_writes_its_traceback(tmp_path: Path) -> None:
    ends = "import os\ndef pytest_keyboard_interrupt(): os._exit(3)\n"
    root = repository(tmp_path, MONEY | {"conftest.py": ends, "test_z.py": "def test_z(): raise KeyboardInterrupt\n"})
    impact(root)
    kept = [execution.name for execution in ExecutionState.open(root).executions()]
    assert kept == ["test_money.py::test_total", "test_names.py::test_greet"]


def test_a_patch_that_does_not_apply_changes_no_file(tmp_path: Path) -> None:
    root = repository(tmp_path)
    state = ExecutionState.open(root)
    state.step("begin")
    edits = [
        Edit.replace(root, "names.py", "hello {name}", "bye {name}"),
        Edit.function(root, "money.py::total", "def total(amounts):\n    return 0"),
    ]
    patch = state.propose(edits)
    write(root, {"money.py": MONEY["money.py"].replace("sum(amounts)", "max(amounts)")})
    before = {path: (root / path).read_text() for path in MONEY}
    with pytest.raises(CodeError, match=r"^patch 1 conflicts with money\.py as it is now; nothing was changed$"):
        state.apply(patch)
    assert {path: (root / path).read_text() for path in MONEY} == before
    assert state.patch(1).status == "proposed"


def test_two_sessions_on_one_state_keep_all_results(tmp_path: Path) -> None:
    root = repository(tmp_path)
    command = ("import sys; from bench_code import ExecutionState\n"
               "sys.exit(ExecutionState.open(sys.argv[1]).run(['-q']))")  # fmt: skip
    both = [subprocess.Popen((sys.executable, "-c", command, str(root)), stdout=subprocess.DEVNULL) for _ in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    names = {execution.name for execution in ExecutionState.open(root).executions()}
    assert names == {"test_money.py::test_total", "test_names.py::test_greet"}


def test_a_name_in_a_file_that_does_not_parse_is_told_with_the_line(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.py": "def (:\n"})
    with pytest.raises(CodeError, match=r"^a\.py does not parse: line 1: invalid syntax$"):
        ExecutionState.open(root).impact("a.py::total")
    with pytest.raises(CodeError, match=r"^a\.py does not parse: line 1: invalid syntax$"):
        Edit.function(root, "a.py::total", "def total(): pass")


@pytest.mark.skipif(os.getuid() != 0, reason="a folder is given to another user")
def test_another_users_repository_is_told_as_that(tmp_path: Path) -> None:
    root = repository(tmp_path)
    os.chown(root, 12345, 12345)
    with pytest.raises(CodeError, match=r"is another user's; allow it with git's setting safe\.directory$"):
        ExecutionState.open(root)


def test_a_repository_without_a_working_tree_is_told_as_that(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare")
    with pytest.raises(CodeError, match=r"has no working tree; name a folder of a clone$"):
        ExecutionState.open(tmp_path)


def test_a_merge_that_is_not_finished_is_told_by_pytest_and_no_result_is_kept_of_it(tmp_path: Path) -> None:
    root = repository(tmp_path)
    impact(root)
    marked = MONEY["money.py"].replace("RATE = 2", "<<<<<<< HEAD\nRATE = 2\n=======\nRATE = 3\n>>>>>>> other")
    write(root, {"money.py": marked})
    printed = impact(root)[2]
    assert "SyntaxError" in printed
    assert "INTERNALERROR" not in printed
    write(root, MONEY)
    assert impact(root)[:2] == ([], 2)


def test_a_file_whose_name_is_not_utf_8_hinders_nothing(tmp_path: Path) -> None:
    reads = "import os\ndef test_reads(): assert [open(n).read() for n in os.listdir(b'.') if n.startswith(b'caf')] == ['x']\n"
    root = repository(tmp_path, MONEY | {"test_reads.py": reads})
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.txt")).write_text("x")
    assert "bench: step 1: 3 tests run" in impact(root)[2]
    [last] = ExecutionState.open(root).executions("test_reads.py::test_reads")
    assert last.volatile == "runs on every change: it reads a path whose name is not UTF-8"
