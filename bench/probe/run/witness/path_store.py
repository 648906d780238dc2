"""The common part of stores that are files or folders: where the copy is, and how it is made, moved into a box and removed."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from bench.common.errors import ConfigError, one_line
from bench.probe.run.witness.originals import OwnersStore
from bench.probe.run.witness.place import CopyNote, PrivateFolder, leftover_backup, remove_tree
from bench.probe.run.witness.rows import printable
from bench.probe.run.witness.store import StoreCopy


class StoresBox(Protocol):
    """What stores need of a box (`bench.probe.run.box`)."""

    def take_store(self, store: PathStore) -> None:
        """Move a store, whose first state has been made, into the box: its methods then run there."""

    def store_method(self, store: int, name: str) -> Callable[..., Any]:
        """Return a function that calls a method of a store in the box."""

    def reset_files(self) -> None:
        """Reset all files in the box except the stores."""

    def reset_memory(self) -> None:
        """Reset the files in which frameworks keep the agent's memory."""


class PathStore(StoreCopy):
    """A file or a folder that the owner named.

    Args:
        name: The owner's name for it.
        path: Its path, as the owner wrote it.
        folder: The folder for the copy.
        variables: Variables that name the copy; `{store}` in a value is its path.
    """

    kind: str

    def __init__(self, name: str, path: Path, folder: Path, variables: Mapping[str, str]) -> None:
        self.name, self._path, self._parent = name, path, folder
        self._variables = variables
        self._place: PrivateFolder | None = None
        self._original: OwnersStore | None = None
        self._keeps_backup = False
        self._box: Literal["", "outside", "inside"] = ""

    def use_box(self) -> None:
        """Put the copy at the owner's path in a box. Call this before `make`."""
        self._box = "outside"
        self._path = self._path.resolve()

    def enter_box(self) -> None:
        """Use the copy in the box from now on. This is called in a process that runs in the box."""
        if self._box != "outside":
            raise RuntimeError("the store is for no box")
        self._box = "inside"

    def run_in_box(self, box: StoresBox, number: int) -> None:
        """Run the methods of the copy in a box from now on. The box knows the store by this number."""
        for method in ("reset", "read", "snapshot", "stamp", "recheck", "query", "change"):
            if hasattr(self, method):
                setattr(self, method, box.store_method(number, method))

    @property
    def place(self) -> Path:
        """The path at which the agent finds the copy."""
        return self._path if self._box else self._copy

    @property
    def first_folder(self) -> Path:
        """The folder with the first state."""
        return self._private_folder.folder

    @property
    def replaces(self) -> Mapping[str, str]:
        """The owner's path as written, absolute and resolved -> the path of the copy; {} in a box."""
        if self._box:
            return {}
        return {str(path): str(self._copy) for path in (self._path, self._path.absolute(), self._path.resolve())}

    @property
    def environment(self) -> Mapping[str, str]:
        return {variable: text.replace("{store}", str(self.place)) for variable, text in self._variables.items()}

    def make(self) -> None:
        """Make the copy, and save the state to which it is reset. Raises ConfigError, also if a killed probe has left a backup
        that differs from the owner's store now, or if the store changes while it is copied."""
        with self._errors_in_one_line("cannot be copied"):
            path = self._path.resolve()
            self._check(path)
            self._original = OwnersStore(self.kind, path)
            if backup := leftover_backup(str(path), self._original.content):
                raise ConfigError(
                    f"store {self.name!r}: {self._path} has changed since a probe copied it; restore it by "
                    f"`bench probe --clean`, or remove the backup, {printable(backup)}"
                )
            self._place = PrivateFolder(self._parent, self.name, CopyNote(self.kind, str(path)))
            try:
                self._copy_first_state(path)
                if self._original.has_changed():
                    raise ConfigError(f"store {self.name!r}: {self._path} changed while it was copied; end what writes to it")
                self._place.note_backup(self._original.content)
            except BaseException:
                self._place.remove()
                self._place = None
                raise

    def remove(self) -> None:
        """Remove the copy. This may be called again."""
        if self._place is None:
            return
        if self._keeps_backup:
            remove_tree(self._private_folder.folder / "copy")
            self._place.unlock()
        else:
            self._place.remove()
        self._place = None

    def has_changed(self, *, surely: bool = False) -> bool:
        """Return whether the owner's file or folder differs from when it was copied."""
        del surely  # the stamps of files are exact
        if self._place is None or self._original is None:
            return False
        return self._original.has_changed()

    def keep_backup(self) -> str:
        """Keep the first state when the copy is removed. Return where it is, and how to restore it."""
        self._keeps_backup = True
        return f"{printable(str(self._first))}; bench probe --clean restores it after a question"

    @abstractmethod
    def _check(self, path: Path) -> None:
        """Raise ConfigError if the store cannot be copied from here."""

    @abstractmethod
    def _copy_first_state(self, path: Path) -> None:
        """Save the first state, and make the copy."""

    @property
    def _copy(self) -> Path:
        """The path that replaces the owner's path."""
        if self._box == "outside":
            raise RuntimeError("the copy is in the box")
        if self._box:
            return self._path
        return self._private_folder.folder / "copy" / self._path.resolve().name

    @property
    def _first(self) -> Path:
        return self._private_folder.folder / "first"

    @property
    def _private_folder(self) -> PrivateFolder:
        """The folder with the copy and the first state. Raises RuntimeError before `make`."""
        if self._place is None:
            raise RuntimeError("the store has no copy: make() comes first")
        return self._place

    @contextmanager
    def _errors_in_one_line(self, problem: str) -> Iterator[None]:
        """Raise a ConfigError in one line for an error of the block."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"store {self.name!r}: {printable(str(self._path))} {problem}: {one_line(str(error), 300)}"
            ) from error
