"""Patches: applied, merged with what changed meanwhile, taken back in any order, and credited."""

from __future__ import annotations

import itertools
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from repositories import MONEY, git, impact, repository, write

from bench_code import Edit, ExecutionState
from bench_code.git import CodeError
from bench_code.patches import credit

LONG = "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(6))


@pytest.fixture
def state(tmp_path: Path) -> ExecutionState:
    opened = ExecutionState.open(repository(tmp_path, {"long.py": LONG}))
    opened.step("begin")
    return opened


def returns(state: ExecutionState, number: int, value: int) -> Edit:
    return Edit.function(state.root, f"long.py::f{number}", f"def f{number}():\n    return {value}")


def values(folder: Path) -> list[int]:
    result = runpy.run_path(str(folder / "long.py"))
    return [result[f"f{number}"]() for number in range(6)]


def test_a_patch_says_what_it_targets_and_who_made_it(state: ExecutionState) -> None:
    patch = state.propose([returns(state, 2, 20)], action="mend f2", call="trial-7/3")
    assert [edit.targets for edit in state.patch(patch.id).edits] == [["long.py::f2"]]
    assert state.patch(patch.id).made_by == "action mend f2, call trial-7/3"
    assert values(state.root)[2] == 2, "a proposed patch changes nothing"


def test_patches_are_taken_back_in_any_order(state: ExecutionState) -> None:
    patches = [state.propose([returns(state, number, 10 * number)]) for number in (1, 3, 5)]
    for patch in patches:
        state.apply(patch)
    assert values(state.root) == [0, 10, 2, 30, 4, 50]
    state.revert(patches[1])
    assert values(state.root) == [0, 10, 2, 3, 4, 50]
    state.revert(patches[0])
    state.revert(patches[2])
    assert (state.root / "long.py").read_text() == LONG


def test_a_patch_that_conflicts_is_refused_and_changes_nothing(state: ExecutionState) -> None:
    first, second = (
        state.propose([returns(state, 1, value), Edit.write(state.root, f"new{value}.py", "")]) for value in (7, 8)
    )
    state.apply(first)
    with pytest.raises(CodeError, match=r"patch 2 conflicts with long\.py as it is now; nothing was changed"):
        state.apply(second)
    assert values(state.root)[1] == 7
    assert not (state.root / "new8.py").exists()


def test_a_file_that_a_patch_made_goes_with_it(state: ExecutionState) -> None:
    patch = state.propose([Edit.write(state.root, "more/new.py", "x = 1\n"), Edit.write(state.root, "long.py", None)])
    state.apply(patch)
    assert ((state.root / "more/new.py").read_text(), (state.root / "long.py").exists()) == ("x = 1\n", False)
    state.revert(patch)
    assert ((state.root / "more/new.py").exists(), (state.root / "long.py").read_text()) == (False, LONG)


def test_changes_of_an_agent_that_edits_files_itself_become_a_patch(state: ExecutionState) -> None:
    write(state.root, {"long.py": LONG.replace("return 4", "return 44")})
    patch = state.note_changes(call="c1")
    assert patch.edits[0].targets == ["long.py::f4"]
    state.revert(patch)
    assert values(state.root)[4] == 4


def test_the_tree_stays_as_clean_as_it_was(state: ExecutionState) -> None:
    patch = state.propose([returns(state, 1, 5)])
    state.apply(patch)
    state.revert(patch)
    assert git(state.root, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda root: Edit.function(root, "long.py::g", "def g(): pass"), r"long\.py has no function or class 'g'"),
        (lambda root: Edit.replace(root, "long.py", "return", "x"), r"long\.py holds the text to replace 6 times"),
        (lambda root: Edit.replace(root, "short.py", "a", "b"), r"short\.py cannot be read: No such file"),
    ],
)
def test_a_wrong_edit_is_told_in_one_line(state: ExecutionState, wrong, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CodeError, match=message):
        wrong(state.root)


def test_credit_tells_sufficient_necessary_and_shared(state: ExecutionState) -> None:
    base = state.store.last_step()[0]
    patches = [state.propose([returns(state, number, 1)]) for number in (0, 2, 3)]

    def outcomes(folder: Path) -> Mapping[str, str]:
        result = values(folder)
        tests = {"f0": result[0] == 1, "both": result[2] == 1 == result[3], "any": 1 in (result[2], result[3]), "always": True}
        return {name: "passed" if holds else "failed" for name, holds in tests.items()}

    credited = {each.test: (each.sufficient, each.necessary) for each in credit(state, patches, base, outcomes)}
    assert credited == {"f0": ((1,), (1,)), "both": ((), (2, 3)), "any": ((2, 3), ())}
    assert len(git(state.root, "worktree", "list").splitlines()) == 1


def test_a_run_between_an_edit_and_its_patch_loses_nothing(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    state = ExecutionState.open(root)
    state.step("run")
    write(root, {"names.py": "def greet(name):\n    return name\n"})
    state.step("run")
    assert [edit.path for edit in state.note_changes("greet").edits] == ["names.py"]
    with pytest.raises(CodeError, match="nothing changed in this worktree"):
        state.note_changes()


def test_a_patch_that_is_made_after_the_run_is_credited_with_the_test_that_turned(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    state = ExecutionState.open(root)
    impact(root)
    write(root, {"names.py": "def greet(name):\n    return name\n", "money.py": MONEY["money.py"] + "MORE = 1\n"})
    impact(root)
    assert state.turned_by("test_names.py::test_greet") == []
    patch = state.note_changes(call="c1")
    assert [each.id for each in state.turned_by("test_names.py::test_greet")] == [patch.id]
    write(root, {"names.py": "def greet(name):\n    return 'hello ' + name\n"})
    impact(root)
    mended = state.note_changes(call="c2")
    assert [each.id for each in state.turned_by("test_names.py::test_greet")] == [mended.id]
    made = dict(state.store.rows("SELECT step, patch FROM versions WHERE artifact = 'names.py::greet'"))
    assert list(made.values()) == [None, patch.id, mended.id]


def test_two_worktrees_do_not_write_each_others_code_into_their_patches(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    git(root, "worktree", "add", "-q", str(tmp_path / "b"))
    a, b = ExecutionState.open(root), ExecutionState.open(tmp_path / "b")
    a.step("run")
    write(b.root, {"names.py": "def greet(name):\n    return name\n"})
    b.step("run")
    write(a.root, {"money.py": "def total(amounts):\n    return 0\n"})
    of_a, of_b = a.note_changes(), b.note_changes()
    assert [[edit.path for edit in patch.edits] for patch in (of_a, of_b)] == [["money.py"], ["names.py"]]
    a.revert(a.patch(of_a.id))
    assert "RATE" in (root / "money.py").read_text() and "hello" in (root / "names.py").read_text()


def test_a_patch_of_another_worktree_is_taken_back_here_only_if_all_of_it_is_here(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    a = ExecutionState.open(root)
    a.step("run")
    write(root, {".gitignore": "*.pyc\n", "names.py": "def greet(name):\n    return name\n"})
    patch = a.note_changes()
    git(root, "add", ".gitignore")
    git(root, "commit", "-qm", "ignore")
    git(root, "worktree", "add", "-q", str(tmp_path / "b"))
    b = ExecutionState.open(tmp_path / "b")
    with pytest.raises(CodeError, match=rf"patch 1 did not change names\.py here; take it back in {root}; nothing was changed"):
        b.revert(patch)
    assert (b.root / ".gitignore").exists() and b.patch(patch.id).status == "applied"
    git(root, "commit", "-qam", "greet")
    git(b.root, "reset", "-q", "--hard", git(root, "rev-parse", "HEAD").strip())
    b.revert(patch)
    assert not (b.root / ".gitignore").exists() and (b.root / "names.py").read_text() == MONEY["names.py"]


def test_no_step_holds_an_untracked_secret_or_a_large_file(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {".env": "KEY=1\n", "large.bin": "x" * 1_000_001, "small.txt": "x"})
    state = ExecutionState.open(root)
    step = state.step("run")
    assert state.content(step, "small.txt") == b"x"
    for path in (".env", "large.bin"):
        with pytest.raises(CodeError, match="was not there"):
            state.content(step, path)


def test_no_patch_holds_what_python_and_its_tools_leave(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", MONEY | {"kept.pyc": "1"})
    state = ExecutionState.open(root)
    state.step("run")
    left = ("__pycache__/money.cpython-311.pyc", "pkg/__pycache__/a.pyc", ".hypothesis/x", ".testmondata")
    write(root, dict.fromkeys(left, "1") | {"kept.pyc": "2", "names.py": "def greet(name):\n    return name\n"})
    patch = state.note_changes()
    assert [edit.path for edit in patch.edits] == ["kept.pyc", "names.py"]
    write(root, dict.fromkeys(left, "2"))
    state.revert(patch)
    state.apply(patch)
    assert (root / left[0]).read_text() == "2" and (root / "names.py").read_text() == "def greet(name):\n    return name\n"


def test_the_tree_goes_back_to_a_step_and_forward_again(state: ExecutionState) -> None:
    first = state.store.last_step()[0]
    patch = state.propose([returns(state, 2, 7)])
    state.apply(patch)
    write(state.root, {"new/added.py": "x = 1\n", ".env": "KEY=1\n"})
    assert state.back(first) > first
    assert values(state.root)[2] == 2 and not (state.root / "new").exists() and (state.root / ".env").exists()
    assert state.patch(patch.id).status == "reverted"
    before = next(step.id for step in state.steps() if step.note == f"before going back to step {first}")
    state.back(before)
    assert values(state.root)[2] == 7 and (state.root / "new" / "added.py").exists()
    assert state.patch(patch.id).status == "applied"
    with pytest.raises(CodeError, match="there is no step 99"):
        state.back(99)


def test_going_back_writes_over_no_file_that_no_step_holds(state: ExecutionState) -> None:
    write(state.root, {"data.txt": "kept"})
    step = state.step("run")
    (state.root / "data.txt").unlink()
    write(state.root, {".gitignore": "data.txt\n", "data.txt": "ignored", "long.py": "x = 1\n"})
    with pytest.raises(CodeError, match=r"data\.txt"):
        state.back(step)
    assert (state.root / "data.txt").read_text() == "ignored" and (state.root / "long.py").read_text() == "x = 1\n"


AGENT = """
import sys, time
from bench_code import ExecutionState
state = ExecutionState.open(sys.argv[1])
state.step("run")
for number in range(1000):
    (state.root / "long.py").write_text(f"def {sys.argv[2]}():\\n    return {number}\\n")
    state.step("run")
    patch = state.note_changes(call=f"{sys.argv[2]}/{number}")
    print(patch.id, flush=True)
"""


def test_agents_in_two_worktrees_never_mix_and_a_killed_agent_loses_no_change(tmp_path: Path) -> None:
    roots = {"a": repository(tmp_path / "r", {"long.py": LONG}), "b": tmp_path / "b"}
    git(roots["a"], "worktree", "add", "-q", str(roots["b"]))
    agents = {
        name: subprocess.Popen((sys.executable, "-c", AGENT, str(root), name), stdout=subprocess.PIPE)
        for name, root in roots.items()
    }
    try:
        for agent in agents.values():
            for _ in range(3):
                assert agent.stdout is not None and agent.stdout.readline()
        time.sleep(0.05 * (os.getpid() % 5))  # each run of this test kills at another moment
    finally:
        for agent in agents.values():
            agent.send_signal(signal.SIGKILL)
            agent.communicate()
    for name, root in roots.items():
        state = ExecutionState.open(root)
        write(root, {"long.py": f"def {name}():\n    return 'last'\n"})
        last = state.note_changes(call=f"{name}/last")
        every = [state.patch(number) for number in range(1, last.id + 1)]
        mine = [patch.edits[0] for patch in every if patch.call.startswith(f"{name}/")]
        assert all(before.after == after.before for before, after in itertools.pairwise(mine)), "a change is in one patch"
        assert mine[-1].after == (root / "long.py").read_bytes() and all(
            f"def {name}(".encode() in (edit.after or b"") for edit in mine
        )


def test_old_steps_are_dropped_and_what_still_counts_stays(state: ExecutionState) -> None:
    size = 300_000
    for number in range(6):
        write(state.root, {"data.bin": os.urandom(size).hex()[:size], "note.txt": str(number)})
        state.note_changes() if number == 2 else state.step("run")
    last = state.store.last_step()[0]
    versions, head = state.at(last), git(state.root, "rev-parse", "--all")
    steps, _, freed = state.prune(2)
    assert steps == last - 2 and freed > size and git(state.root, "rev-parse", "--all") != head
    git(state.root, "-c", "gc.pruneExpire=now", "gc", "-q")
    assert [step.id for step in state.steps()] == [last - 1, last] and state.at(last) == versions
    assert state.content(last, "note.txt") == b"5"
    assert {edit.path for edit in state.note_changes().edits} == {"data.bin", "note.txt"}
    state.revert(state.patch(2))
    assert state.prune(2)[0] > 0
