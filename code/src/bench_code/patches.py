"""Patches: edits with their provenance. They are applied, merged with later changes, reverted, and credited with tests."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench_code.edits import Edit, content_in, file_in
from bench_code.git import CodeError
from bench_code.workspace import Workspace

EDITS = [{"path": str, "before": str, "after": str}]
"""The type of a patch's edits as JSON in the state file. `before` and `after` are git's ids of contents; "" means no file."""
MAX_EXACT_PATCHES = 6
"""The most patches of which all subsets are run to credit them."""


@dataclass(frozen=True)
class Patch:
    """Edits that belong together, and who made them.

    id       the patch's number in the state
    at       when it was made, in seconds since 1970
    status   "proposed", "applied" or "reverted"
    edits    the edits, at most one for each file
    action   the agent's action that made it; "" if none did
    call     the model call that made it; "" if none did
    """

    id: int
    at: float
    status: Literal["proposed", "applied", "reverted"]
    edits: tuple[Edit, ...]
    action: str = ""
    call: str = ""

    @property
    def made_by(self) -> str:
        """Who made the patch, in words; "" if that is not known."""
        return ", ".join(f"{key} {value}" for key, value in (("action", self.action), ("call", self.call)) if value)


def propose(state: Workspace, edits: Sequence[Edit], action: str = "", call: str = "") -> Patch:
    """Store a patch without applying it.

    Args:
        state: The execution state.
        edits: The edits, at most one for each file.
        action: The agent's action that made it.
        call: The model call that made it.

    Returns:
        The patch with its number.

    Raises:
        CodeError: There are no edits, two edits change the same file, or an edit lies outside of the tree.
    """
    if not edits:
        raise CodeError("a patch needs an edit")
    for path in (paths := [edit.path for edit in edits]):
        if paths.count(path) > 1:
            raise CodeError(f"a patch has one edit for each file, and {path} has {paths.count(path)}")
        file_in(state.root, path)
    return _keep(state, edits, "proposed", action, call)


def _keep(state: Workspace, edits: Sequence[Edit], status: str, action: str, call: str) -> Patch:
    """Store a patch, and return it with its number."""
    keep = state.repository.keep
    rows = [{"path": edit.path, "before": _blob(keep, edit.before), "after": _blob(keep, edit.after)} for edit in edits]
    with state.store.writing():
        cursor = state.store.db.execute(
            "INSERT INTO patches(at, base, status, edits, action, call, person) VALUES (?, ?, ?, ?, ?, ?, '')",
            (time.time(), state.store.last_step()[1], status, json.dumps(rows), action, call),
        )
    return patch_of(state, int(cursor.lastrowid or 0))


def patch_of(state: Workspace, number: int) -> Patch:
    """Return a patch by its number.

    Args:
        state: The execution state.
        number: The number of a patch.

    Returns:
        The patch.

    Raises:
        CodeError: There is no patch of this number.
    """
    query = "SELECT id, at, status, edits, action, call FROM patches WHERE id = ?"
    rows_of_patch = state.store.rows(query, number)
    if not rows_of_patch:
        raise CodeError(f"there is no patch {number}; `bench code log` shows the patches")
    id_, at, status, rows, *provenance = rows_of_patch[0]
    content = state.repository.content
    edits = tuple(
        Edit(row["path"], *(content(row[side]) if row[side] else None for side in ("before", "after")))
        for row in state.store.parsed(rows, EDITS)
    )
    return Patch(id_, at, status, edits, *provenance)


def apply(state: Workspace, patch: Patch) -> int:
    """Apply a patch to the present tree. If a file has changed since, both changes are merged.

    Args:
        state: The execution state.
        patch: The patch.

    Returns:
        The number of the step that the patch made.

    Raises:
        CodeError: The patch is applied already, or conflicts with the tree. Then nothing is written.
    """
    return _change(state, patch, "applied")


def revert(state: Workspace, patch: Patch) -> int:
    """Revert a patch, and keep later changes.

    Args:
        state: The execution state.
        patch: The patch.

    Returns:
        The number of the step that this made.

    Raises:
        CodeError: The patch is not applied, or only in another worktree, or later changes conflict with it. Then nothing is
            written.
    """
    return _change(state, patch, "reverted")


def _change(state: Workspace, patch: Patch, status: Literal["applied", "reverted"]) -> int:
    """Apply or revert a patch, and return the number of the new step. Raises CodeError before anything is written."""
    with state.store.locked():
        present = patch_of(state, patch.id).status
        if present == status or (status == "reverted" and present == "proposed"):
            raise CodeError(f"patch {patch.id} is {present}; nothing is to be done")
        if status == "reverted":
            _refuse_elsewhere(state, patch)
        state.step("run", "before a patch")
        edits = [edit if status == "applied" else edit.reversed for edit in patch.edits]
        for path, content in _changed(state, state.root, edits, patch).items():
            _put(state.root / path, content)
        with state.store.writing():
            state.store.db.execute("UPDATE patches SET status = ? WHERE id = ?", (status, patch.id))
            return state.step("apply" if status == "applied" else "revert", f"patch {patch.id}", patch.id)


def _refuse_elsewhere(state: Workspace, patch: Patch) -> None:
    """Raise CodeError if only other worktrees applied a patch, and this one does not have all of its changes."""
    query = "SELECT folder FROM made_in JOIN steps ON id = step WHERE kind = 'apply' AND note = ?"
    folders = {folder for (folder,) in state.store.rows(query, f"patch {patch.id}")}
    if not folders or str(state.root) in folders:
        return
    for edit in patch.edits:
        if content_in(state.root, edit.path) == edit.before:
            where = " or ".join(sorted(folders))
            raise CodeError(f"patch {patch.id} did not change {edit.path} here; take it back in {where}; nothing was changed")


def back(state: Workspace, number: int) -> int:
    """Bring the tree back to a step. The tree as it was before is a step as well, so that one can go back to it too.

    Args:
        state: The execution state.
        number: The number of the step.

    Returns:
        The number of the step that this made.

    Raises:
        CodeError: There is no step of this number, or a file that no step holds is in the way. Then nothing is written.
    """
    with state.store.locked():
        tree = state.named_step(number).tree
        state.step("run", f"before going back to step {number}")
        state.repository.restore(state.repository.snapshot(), tree)
        states = _statuses(state)
        with state.store.writing():
            for patch in states[max(states)]:
                status = states.get(number, {}).get(patch, "reverted")
                state.store.db.execute("UPDATE patches SET status = ? WHERE id = ?", (status, patch))
            return state.step("back", f"step {number}")


def _statuses(state: Workspace) -> dict[int, dict[int, str]]:
    """Return for each step of this worktree the status of all patches that were applied or taken back in it so far."""
    query = (
        "SELECT id, kind, CAST(substr(note, 6) AS INTEGER) FROM steps JOIN made_in ON step = id WHERE folder = ? ORDER BY id"
    )
    statuses: dict[int, dict[int, str]] = {0: {}}
    known: dict[int, str] = {}
    for step, kind, number in state.store.rows(query, str(state.root)):
        if kind == "back":
            known = {patch: statuses.get(number, {}).get(patch, "reverted") for patch in known}
        elif kind in ("apply", "revert"):
            known = known | {number: "applied" if kind == "apply" else "reverted"}
        statuses[step] = known
    return statuses


def prune(state: Workspace, keep: int) -> tuple[int, int, int]:
    """Drop all steps but the last, with the executions before them that later executions replaced. All patches stay.

    Args:
        state: The execution state.
        keep: How many steps are kept.

    Returns:
        The number of the dropped steps, that of the dropped executions, and the bytes that the state and git no longer hold.
        Git's part of them is freed by `git gc`.
    """
    store = state.store
    with store.locked():
        steps = store.rows("SELECT id, tree FROM steps ORDER BY id DESC LIMIT ?", keep)
        for (folder,) in store.rows("SELECT folder FROM worktrees"):
            if not Path(folder).is_dir():
                with store.writing():
                    store.db.execute("DELETE FROM worktrees WHERE folder = ?", (folder,))
        before = store.path.stat().st_size
        dropped = store.drop_before(min((step for step, _ in steps), default=0))
        trees = {tree for _, tree in steps} | {tree for (tree,) in store.rows("SELECT patched FROM worktrees")}
        edits = [row for (rows,) in store.rows("SELECT edits FROM patches") for row in store.parsed(rows, EDITS)]
        blobs = {row[side] for row in edits for side in ("before", "after")} - {""}
        freed = state.repository.hold_only(trees, blobs)
        return *dropped, before - store.path.stat().st_size + freed


def _changed(state: Workspace, root: Path, edits: Sequence[Edit], patch: Patch) -> dict[str, bytes | None]:
    """Return the contents of files after a patch's edits. Raises CodeError for a conflict or a foreign path."""
    contents = dict[str, bytes | None]()
    for edit in edits:
        present = content_in(root, edit.path)
        merged = edit.after if present == edit.before else state.repository.merged(present, edit.before, edit.after)
        if merged is None and present != edit.before:
            raise CodeError(f"patch {patch.id} conflicts with {edit.path} as it is now; nothing was changed")
        contents[edit.path] = merged
    return contents


def _put(file: Path, content: bytes | None) -> None:
    """Write a file completely or not at all, with the mode that the file has; None removes the file."""
    if content is None:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f"{file.name}.bench-{os.getpid()}")
    beside.unlink(missing_ok=True)
    with beside.open("xb") as opened:  # never through a link of this name
        opened.write(content)
    if file.exists():
        shutil.copymode(file, beside)
    beside.replace(file)


def note_changes(state: Workspace, action: str = "", call: str = "") -> Patch:
    """Make a patch of all that changed in this worktree since its last patch, or its first step. Runs in between do not matter.

    Args:
        state: The execution state.
        action: The agent's action that made the changes.
        call: The model call that made them.

    Returns:
        The patch, which counts as applied.

    Raises:
        CodeError: Nothing changed, or there is no earlier step.
    """
    with state.store.locked():
        step, before = state.store.last_step()
        if not step:
            raise CodeError("there is no step to compare with; `bench code run` makes the first")
        repository = state.repository
        before = state.store.patched_tree(str(state.root)) or before
        tree = repository.snapshot()
        edits = []
        for path in repository.changed(before, tree):
            blobs = (repository.blob_at(before, path), repository.blob_at(tree, path))
            edits.append(Edit(path, *(repository.content(blob) if blob else None for blob in blobs)))
        if not edits:
            raise CodeError("nothing changed in this worktree since its last patch, or its first step")
        with state.store.writing():  # a process that is killed makes both or none, so that no change is in two patches
            patch = _keep(state, edits, "applied", action, call)
            state.step("apply", f"patch {patch.id}", patch.id)
            state.store.credit_versions(patch.id, str(state.root), before, [edit.path for edit in edits])
        return patch


@dataclass(frozen=True)
class Credit:
    """Which patches of a set changed the outcome of a test.

    before       the outcome without any of the patches
    after        the outcome with all of them
    sufficient   the patches each of which changes it alone
    necessary    the patches without which it does not change; both are empty if several groups of patches change it
    """

    test: str
    before: str
    after: str
    sufficient: tuple[int, ...]
    necessary: tuple[int, ...]


Runner = Callable[[Path], Mapping[str, str]]


def credit(state: Workspace, patches: Sequence[Patch], base: int, run: Runner) -> list[Credit]:
    """Credit patches with the tests whose outcome they change, by running the tests with subsets of the patches.

    Args:
        state: The execution state.
        patches: The patches, in the order in which they are applied. Of up to six all subsets are run; of more only each patch
            alone and all patches but each.
        base: The step whose tree they are applied to.
        run: Runs the tests in a folder, and returns each test's outcome.

    Returns:
        The credit for each test whose outcome differs with all patches. A subset that cannot be applied changes no outcome.
    """
    numbers = [patch.id for patch in patches]
    sizes: Iterator[int] | tuple[int, ...] = iter(range(len(patches) + 1))
    if len(patches) > MAX_EXACT_PATCHES:
        sizes = (0, 1, len(patches) - 1, len(patches))
    outcomes: dict[frozenset[int], Mapping[str, str]] = {}
    for size in sizes:
        for subset in itertools.combinations(patches, size):
            outcomes[frozenset(patch.id for patch in subset)] = _outcomes(state, subset, base, run)
    none, every = outcomes[frozenset()], outcomes[frozenset(numbers)]
    credited = []
    for test in sorted({*none, *every}):
        before, after = none.get(test, "absent"), every.get(test, "absent")
        if before == after:
            continue
        turned = {subset for subset, results in outcomes.items() if results.get(test, "absent") == after}
        sufficient = tuple(number for number in numbers if frozenset({number}) in turned)
        necessary = tuple(number for number in numbers if not any(number not in subset for subset in turned))
        credited.append(Credit(test, before, after, sufficient, necessary))
    return credited


def _outcomes(state: Workspace, patches: Sequence[Patch], base: int, run: Runner) -> Mapping[str, str]:
    with checked_out(state, base) as folder:
        try:
            for patch in patches:
                for path, content in _changed(state, folder, patch.edits, patch).items():
                    _put(folder / path, content)
        except CodeError:
            return {}
        return run(folder)


@contextmanager
def checked_out(state: Workspace, step: int) -> Iterator[Path]:
    """Check out the files of a step into a folder of their own.

    The folder is a worktree of the repository, so it has the same execution state. It is removed at the end of the block.

    Args:
        state: The execution state.
        step: The number of a step.

    Yields:
        The folder.

    Raises:
        CodeError: There is no step of this number.
    """
    repository = state.repository
    commit = repository.commit_of(state.named_step(step).tree)
    with tempfile.TemporaryDirectory(prefix="bench-code-") as scratch:
        folder = Path(scratch, "tree")
        repository.ask("worktree", "add", "--detach", "--quiet", str(folder), commit)
        try:
            yield folder
        finally:
            repository.ask("worktree", "remove", "--force", str(folder))


def _blob(keep: Callable[[bytes], str], content: bytes | None) -> str:
    return "" if content is None else keep(content)
