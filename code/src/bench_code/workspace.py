"""Keeps the versions of a repository's tree. Each step notes the tree and the versions of all artifacts that changed."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench_code.git import CodeError, Repository
from bench_code.present import Present
from bench_code.record import ABSENT
from bench_code.store import ExecutionStore
from bench_code.units import Module, digest
from bench_code.validity import ValidityDecision, decide

FOLDER = "bench-code"
"""The name of the state's folder under git's common directory."""


@dataclass(frozen=True)
class WorkspaceStep:
    """A noted tree of the repository.

    id     the step's number
    at     when the tree was noted, in seconds since 1970
    tree   the id of the tree in git
    kind   why it was noted: "run", "apply", "revert" or another word
    note   what the log shows of it
    """

    id: int
    at: float
    tree: str
    kind: str
    note: str


class Workspace:
    """The steps and the stored executions of a repository.

    Attributes:
        root: The top of the working tree.
        repository: The git repository.
        store: The file that holds the state.
    """

    def __init__(self, repository: Repository):
        self.repository, self.root = repository, repository.root
        self.store = ExecutionStore(repository.common / FOLDER / "state.db")

    @classmethod
    def open(cls, folder: str | Path = ".") -> Self:
        """Return the state of the repository that contains a folder. A new state is empty.

        Args:
            folder: A folder of a git repository.

        Returns:
            The state.

        Raises:
            CodeError: The folder lies in no git repository, or its state cannot be read.
        """
        return cls(Repository.at(Path(folder)))

    # Steps

    def steps(self) -> list[WorkspaceStep]:
        """Return all steps.

        Returns:
            The steps, oldest first.
        """
        return [WorkspaceStep(*row) for row in self.store.rows("SELECT id, at, tree, kind, note FROM steps ORDER BY id")]

    def step(self, kind: str, note: str = "", patch: int | None = None) -> int:
        """Note the present tree, with uncommitted changes, and the versions of all artifacts that changed since the last step.

        Args:
            kind: Why it is noted: "run", "apply", "revert" or a word of your own.
            note: What the log shows of it.
            patch: The number of the patch that made these versions.

        Returns:
            The step's number. A run on an unchanged tree makes no step: the number is that of the last.
        """
        tree = self.repository.snapshot()
        last, before = self.store.last_step()
        patched = self.store.patched_tree(str(self.root))
        if tree == before and kind == "run" and patched:
            return last
        self.repository.commit(tree, f"{kind} {note}".strip())
        files = self.repository.files(tree)
        versions = dict[str, str]()
        for path in self.repository.changed(before, tree):
            versions |= self._versions_of(path, files.get(path, ""))
            drop_outdated_bytecode(self.root / path)
        changed = set(self.repository.changed(patched or before, tree))  # another worktree may have made the last step
        with self.store.writing():
            step = self.store.add_step(tree, kind, note, str(self.root))
            self.store.add_versions(step, versions, patch, changed)
            if kind != "run" or not patched:
                base = tree if kind != "run" else self.repository.first_tree() or tree
                self.store.db.execute("INSERT OR REPLACE INTO worktrees VALUES (?, ?)", (str(self.root), base))
        return step

    def present(self, step: int = 0, environment: Mapping[str, str] | None = None) -> Present:
        """Return the tree of a step, or the present tree, for a process with these variables. A text is parsed once."""
        tree = self.named_step(step).tree if step else self.repository.snapshot()
        return Present(self.root, tree, self.repository.files(tree), self._parsed, environment)

    def _parsed(self, path: str, value: str) -> Module | None:
        try:
            return self.store.module(value.partition(" ")[2], (self.root / path).read_bytes)
        except OSError:
            return None

    def _versions_of(self, path: str, value: str) -> dict[str, str]:
        """Return the digest of the present version of each artifact that a file, of this value in git, has or had."""
        file = self.root / path
        known = self.store.rows("SELECT DISTINCT artifact FROM versions WHERE instr(artifact, ?) = 1", f"{path}::")
        gone = {path: ABSENT} | dict.fromkeys((artifact for (artifact,) in known), ABSENT)
        try:
            content = file.read_bytes() if file.is_file() else None
        except OSError as error:
            raise CodeError(f"{path} cannot be read: {error.strerror}") from None
        if content is None:
            return gone
        if not path.endswith(".py"):
            return gone | {path: digest(content)}
        module = self.store.module(value.partition(" ")[2], lambda: content)
        return gone | {path: module.skeleton} | {f"{path}::{unit.name}": unit.digest for unit in module.units}

    def named_step(self, step: int) -> WorkspaceStep:
        """Return the step of this number. Raises CodeError if there is none."""
        for each in self.steps():
            if each.id == step:
                return each
        raise CodeError(f"there is no step {step}; the last is {self.store.last_step()[0]}")

    def decisions(self) -> list[ValidityDecision]:
        """Return for each layout which results hold in the present tree."""
        layouts, present = self.store.rows("SELECT DISTINCT layout FROM executions"), self.present()
        return [decide(self.store, present, layout) for (layout,) in layouts]


def drop_outdated_bytecode(source: Path) -> None:
    """Delete the compiled files of a source file that are not newer than the source.

    Python compares a compiled file with its source only by size and by time in whole seconds. After an edit within the same
    second it would run the old code, and the result would be stored for the new code.
    """
    for compiled in (source.parent / "__pycache__").glob(f"{glob.escape(source.stem)}.*.pyc"):
        with contextlib.suppress(OSError):  # the source is gone, or another process was first
            if compiled.stat().st_mtime_ns <= source.stat().st_mtime_ns:
                compiled.unlink()
