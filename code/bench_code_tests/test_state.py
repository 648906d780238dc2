"""What the execution state answers: what code ran at a step, what a change reaches, why a test must run, who turned it."""

from __future__ import annotations

import json
import multiprocessing
import os
import py_compile
import subprocess
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from repositories import MONEY, git, impact, repository, write
from typer.testing import CliRunner

from bench_code import ExecutionState
from bench_code.cli import app
from bench_code.git import CodeError
from bench_code.record import Execution, Fact, Record
from bench_code.store import ExecutionStore


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> ExecutionState:
    """A state with three steps: all passes, a patch breaks a test, and it has run."""
    root = repository(tmp_path_factory.mktemp("ran"))
    impact(root)
    write(root, {"money.py": MONEY["money.py"].replace("sum(amounts)", "max(amounts)")})
    ExecutionState.open(root).note_changes(action="speed", call="call-9")
    impact(root)
    return ExecutionState.open(root)


def test_it_says_what_code_there_was_at_a_step(ran: ExecutionState) -> None:
    assert ran.content(1, "money.py").decode() == MONEY["money.py"]
    before, after = ran.at(1), ran.at(2)
    assert {artifact for artifact in after if before.get(artifact) != after[artifact]} == {"money.py::total"}


def test_it_says_what_a_change_reaches(ran: ExecutionState) -> None:
    assert ran.impact("money.py::total") == ["test_money.py::test_total"]
    assert ran.impact("names.py") == ["test_names.py::test_greet"]
    assert ran.impact("money.py::spare") == []


def test_it_says_which_patch_of_which_call_turned_a_test(ran: ExecutionState) -> None:
    assert [patch.made_by for patch in ran.turned_by("test_money.py::test_total")] == ["action speed, call call-9"]
    assert ran.turned_by("test_names.py::test_greet") == []


def test_the_command_tells_the_same(ran: ExecutionState) -> None:
    def printed(*words: str) -> str:
        return CliRunner().invoke(app, [*words, "--in", str(ran.root)], catch_exceptions=False).output

    assert printed("impact", "money.py::total") == "test_money.py::test_total\n"
    assert "turned by patch 1 (action speed, call call-9)" in printed("why", "test_money.py::test_total")
    assert printed("at", "--step", "1", "names.py") == MONEY["names.py"]
    assert "1 failed" in printed("log")
    assert "failed  test_money.py::test_total" in printed("ran", "2") and "money.py::total" in printed("ran", "2")
    assert "test_money.py::test_total  body  money.py::total" in printed("needs").splitlines()


def test_each_command_answers_a_program_in_json(ran: ExecutionState) -> None:
    def answer(*words: str) -> Any:
        return json.loads(CliRunner().invoke(app, [*words, "--json", "--in", str(ran.root)], catch_exceptions=False).stdout)

    test = "test_money.py::test_total"
    assert answer("impact", "money.py::total") == {"artifact": "money.py::total", "rerun": [test]}
    why = answer("why", test)
    assert (why["last"]["outcome"], why["changed"], why["turned_by"][0]["call"]) == ("failed", [], "call-9")
    assert why["turned_by"][0]["edits"] == [{"path": "money.py", "targets": ["money.py::total"]}]
    assert {fact["name"] for fact in answer("needs", test)[test] if fact["kind"] == "body"} == {"money.py::total"}
    at, result = answer("at", "--step", "2"), answer("ran", "2")
    assert result["functions"]["money.py::total"] == at["versions"]["money.py::total"]
    assert answer("at", "--step", "2", "names.py")["content"] == MONEY["names.py"]
    assert [step["outcomes"] for step in answer("log")][:2] == [{"passed": 2}, {"failed": 1}]
    assert set(app_commands()) - {"run"} <= {
        *("at", "ran", "impact", "needs", "why", "make", "patch", "revert", "apply", "back", "prune"),
        *("declare", "confirm", "stale", "log"),
    }
    for command in app_commands():
        assert "--json" in CliRunner().invoke(app, [command, "--help"]).output


def app_commands() -> list[str]:
    return [each.name or str(getattr(each.callback, "__name__", "")) for each in app.registered_commands]


def test_what_a_test_needs_of_an_installed_package_is_a_line(tmp_path: Path) -> None:
    root, test = repository(tmp_path), "test_it.py::test_it"
    state, packages = ExecutionState.open(root), "/usr/lib/python3/site-packages"
    files = ("shelf/__init__.py", "shelf/in/a.py", "shelf/b.py", "single.py")
    facts = [Fact("file", f"{packages}/{name}", "v") for name in files] + [Fact("file", "my-packages/a/b.txt", "v")]
    state.store.save(
        state.step("run"), "", [Execution("test", test, "passed", "", 0.0, (Record("test", test, frozenset(facts)),))]
    )
    answer = CliRunner().invoke(app, ["needs", test, "--in", str(root)], catch_exceptions=False).output
    shelf, single = f"{test}  file  {packages}/shelf  (3 files)", f"{test}  file  {packages}/single.py"
    assert answer.splitlines() == [shelf, single, f"{test}  file  my-packages/a/b.txt"]


def test_it_gives_no_reason_for_a_result_that_a_run_keeps(tmp_path: Path) -> None:
    root, test = repository(tmp_path), "test_money.py::test_total"
    impact(root)
    write(root, {"money.py": MONEY["money.py"].replace("sum(amounts)", "max(amounts)")})
    impact(root)
    state = ExecutionState.open(root)
    state.back(1)
    last, kept = state.last(test), state.kept(test)
    assert (last.outcome, kept and (kept.outcome, kept.step), state.why(test)) == ("failed", ("passed", 1), [])
    words = ["why", test, "--in", str(root)]
    assert f"{test} is valid: passed at step 1\n" in CliRunner().invoke(app, words, catch_exceptions=False).output
    assert impact(root)[:2] == ([], 2)
    write(root, {"money.py": MONEY["money.py"].replace("sum(amounts)", "min(amounts)")})
    assert state.kept(test) is None and [fact.name for fact in state.why(test)] == ["money.py::total"]


def test_a_session_answers_a_program_with_its_exit_code(ran: ExecutionState) -> None:
    done = CliRunner().invoke(app, ["run", "--json", "--in", str(ran.root)])
    report = json.loads(done.stdout)
    assert done.exit_code == report["exit"] == 1 and len(report["ran"]) + len(report["kept"]) == 2


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        (lambda state: state.at(99), "there is no step 99; the last is 2"),
        (lambda state: state.content(1, "none.py"), "none.py was not there at step 1"),
        (lambda state: state.impact("none.py::f"), "there is no file none.py; name an artifact as path::function"),
        (lambda state: state.impact("money.py::f"), "money.py has no function or class 'f'"),
        (lambda state: state.why("test_x"), "nothing named 'test_x' has run here; `bench code log` shows what has"),
        (lambda state: state.patch(9), "there is no patch 9; `bench code log` shows the patches"),
    ],
)
def test_a_question_that_has_no_answer_is_told_in_one_line(ran: ExecutionState, ask, line: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CodeError) as error:
        ask(ran)
    assert str(error.value) == line


def test_a_dirty_tree_and_a_file_that_does_not_parse_are_steps_as_well(tmp_path: Path) -> None:
    root = repository(tmp_path)
    write(root, {"broken.py": "def f(:\n", "money.py": "RATE = 3\n"})
    state = ExecutionState.open(root)
    step = state.step("begin")
    assert "broken.py" in state.at(step)
    assert state.content(step, "money.py") == b"RATE = 3\n"
    assert git(root, "status", "--porcelain").split() == ["M", "money.py", "??", "broken.py"]


def test_a_state_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    root = repository(tmp_path)
    write(root, {".git/bench-code/state.db": "no database" * 100})
    with pytest.raises(CodeError, match="rename it, and the state begins anew"):
        ExecutionState.open(root)


def test_two_processes_write_one_state(tmp_path: Path) -> None:
    root = repository(tmp_path)
    program = (
        "import sys; from bench_code import ExecutionState; from bench_code.record import *\n"
        "state = ExecutionState.open(sys.argv[1])\n"
        "for n in range(20):\n"
        "    step = state.step('mark', sys.argv[2])\n"
        "    record = Record('test', 't', frozenset({Fact('file', f'{sys.argv[2]}{n}', 'v')}))\n"
        "    state.store.save(step, '', [Execution('test', f'{sys.argv[2]}{n}', 'passed', '', 0.0, (record,))])\n"
    )
    both = [subprocess.Popen((sys.executable, "-c", program, str(root), name)) for name in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    state = ExecutionState.open(root)
    assert len(state.steps()) == len(state.executions()) == 40


def open_each(folder: Path, gate: Barrier) -> None:
    """Open one new state after another, each at the moment at which the other processes open it."""
    for number in range(50):
        gate.wait(timeout=20)
        ExecutionStore(folder / f"{number}.db")


def test_processes_that_make_one_state_at_once_wait_for_each_other(tmp_path: Path) -> None:
    spawned = multiprocessing.get_context("spawn")
    gate = spawned.Barrier(4)
    processes = [spawned.Process(target=open_each, args=(tmp_path, gate)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4


PIPELINE = {
    "one.py": "from pathlib import Path as P\nP('out').mkdir(exist_ok=True)\n"
    "P('out/a.txt').write_text(P('in.txt').read_text().upper())\n",
    "two.py": "import lib\nfrom pathlib import Path\nPath('out/b.txt').write_text(lib.twice(Path('out/a.txt').read_text()))\n",
    "lib.py": "def twice(text):\n    return text * 2\n",
    "in.txt": "ab",
    "guide.md": ">>> import lib\n>>> lib.twice('x')\n'xx'\n",
}


def made(state: ExecutionState, *files: str) -> list[tuple[str, bool]]:
    return [(result.outcome, is_kept) for result, is_kept in state.run_all([file.split() for file in files])]


def test_scripts_and_documents_run_where_their_results_do_not_hold(tmp_path: Path) -> None:
    root = repository(tmp_path, PIPELINE)
    state = ExecutionState.open(root)

    def kept() -> list[bool]:
        return [is_kept for _, is_kept in made(state, "one.py", "two.py", "guide.md")]

    assert kept() == [False, False, False]
    assert kept() == [True, True, True]
    write(root, {"in.txt": "AB"})
    assert kept() == [False, True, True], "the first script left the same file"
    write(root, {"in.txt": "cd"})
    assert kept() == [False, False, True]
    (root / "out/b.txt").unlink()
    assert kept() == [True, False, True]
    write(root, {"lib.py": PIPELINE["lib.py"].replace("2", "3")})
    assert made(state, "one.py", "two.py", "guide.md") == [("passed", True), ("passed", False), ("failed", False)]
    assert (root / "out/b.txt").read_text() == "CDCDCD"
    assert kept() == [True, True, False], "no failure is kept"


@pytest.mark.parametrize(
    ("script", "change"),
    [
        ("import glob\nprint(glob.glob('data/*.csv'))", "data/2.csv"),
        ("print(open('../outside.csv').read())", "../outside.csv"),
        ("import sys\nsys.path.append('../library')\nimport distant", "../library/distant.py"),
        ("import os\nprint(open('linked.csv').read())\nos.chdir('/')", "../outside.csv"),
        ("import os\nos.chdir('/')", "it.py"),
        ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''], check=True)", "any.txt"),
    ],
    ids=["a listed folder", "a file outside", "a module outside", "a link", "itself", "a process"],
)
def test_a_script_runs_again_after_a_change_of_what_it_used(tmp_path: Path, script: str, change: str) -> None:
    root = repository(tmp_path / "tree", {"it.py": script, "data/1.csv": "1"})
    write(root, {"../outside.csv": "1", "../library/distant.py": "A = 1"})
    (root / "linked.csv").symlink_to("../outside.csv")
    py_compile.compile(str(tmp_path / "library/distant.py"), doraise=True)
    state = ExecutionState.open(root)
    assert made(state, "it.py") == [("passed", False)]
    write(root, {"../other.csv": "1"})
    assert made(state, "it.py") == [("passed", True)]
    write(root, {change: "B = 22\n"})
    assert made(state, "it.py") == [("passed", False)]


def test_a_script_that_leaves_no_result_or_fails_is_told(tmp_path: Path) -> None:
    root = repository(tmp_path, {"dies.py": "import os, sys\n_ = sys.argv[1:] or os._exit(0)\nsys.exit(3)\n"})
    (root / "bad.md").write_bytes(b"\xff")
    state = ExecutionState.open(root)
    with pytest.raises(CodeError, match=r"dies\.py ended without a result"):
        made(state, "dies.py")
    assert made(state, "dies.py 1", "bad.md") == [("failed", False), ("failed", False)]
    assert [each.detail.split()[0] for each in state.executions()] == ["exit", "UnicodeDecodeError"]


def test_code_that_was_edited_within_the_second_runs_as_it_is_now(tmp_path: Path) -> None:
    root = repository(tmp_path)
    source, second, tenth = root / "money.py", 1_700_000_000 * 10**9, 10**8
    write(root, {"total.py": "import money\n\nassert money.total([1]) == 2\n"})
    os.utime(source, ns=(second, second))
    compiled = py_compile.compile(str(source), doraise=True)
    assert compiled
    os.utime(compiled, ns=(second + tenth, second + tenth))
    write(root, {"money.py": MONEY["money.py"].replace("RATE = 2", "RATE = 3")})
    os.utime(source, ns=(second + 2 * tenth, second + 2 * tenth))
    assert made(ExecutionState.open(root), "total.py") == [("failed", False)]
