"""Patches: applied, merged with what changed meanwhile, taken back in any order, and credited."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path

import pytest
from repositories import git, repository, write

from bench.codebase import Edit, ExecutionState
from bench.codebase.git import CodeError
from bench.codebase.patches import credit

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


def test_no_step_holds_an_untracked_secret_or_a_large_file(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, {".env": "KEY=1\n", "large.bin": "x" * 1_000_001, "small.txt": "x"})
    state = ExecutionState.open(root)
    step = state.step("run")
    assert state.content(step, "small.txt") == b"x"
    for path in (".env", "large.bin"):
        with pytest.raises(CodeError, match="was not there"):
            state.content(step, path)
