"""The common part of stores that are files or folders: the place of the copy, and how the copy is made, handed over and
removed."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from bench.common.errors import ConfigError, one_line
from bench.probe.run.witness.originals import OwnersStore
from bench.probe.run.witness.place import Place, PlaceNote, backup_left, remove_tree
from bench.probe.run.witness.rows import printable
from bench.probe.run.witness.store import StoreCopy


class StoresBox(Protocol):
    """A box in which copies of stores stand (`bench.probe.run.box`)."""

    def take_store(self, store: PathStore) -> None:
        """Have all that is done with the copy of a store done in the box. Its first state is made."""

    def store_method(self, store: int, name: str) -> Callable[..., Any]:
        """Return the function that calls a method of a store in the box."""

    def reset_files(self) -> None:
        """Have all as it was at first, but for the stores."""

    def reset_memory(self) -> None:
        """Have the files in which an agent keeps what it knows as they were at first."""


class PathStore(StoreCopy):
    """A file or a folder that the owner named.

    Args:
        name: The owner's name for it.
        path: Where it is, as the owner wrote it.
        folder: Where the copy is made.
        variables: Variables that hand the copy over; `{store}` in a value is its path.
    """

    kind: str

    def __init__(self, name: str, path: Path, folder: Path, variables: Mapping[str, str]) -> None:
        self.name, self._path, self._parent = name, path, folder
        self._variables = variables
        self._place: Place | None = None
        self._original: OwnersStore | None = None
        self._is_kept = False
        self._box: Literal["", "outside", "inside"] = ""

    def use_box(self) -> None:
        """Have the copy stand at the owner's path, in a box. Call it before `make`."""
        self._box = "outside"
        self._path = self._path.resolve()

    def enter_box(self) -> None:
        """Work on the copy from now on, in a process that is in the box."""
        if self._box != "outside":
            raise RuntimeError("the store is for no box")
        self._box = "inside"

    def leave_to(self, box: StoresBox, number: int) -> None:
        """Have all that is done with the copy done in a box, which knows the store by this number."""
        for method in ("reset", "read", "snapshot", "stamp", "recheck", "query", "change"):
            if hasattr(self, method):
                setattr(self, method, box.store_method(number, method))

    @property
    def place(self) -> Path:
        """Where the agent finds it."""
        return self._path if self._box else self._copy

    @property
    def first_folder(self) -> Path:
        """The folder with its first state."""
        return self._own_place.folder

    @property
    def replaces(self) -> Mapping[str, str]:
        if self._box:
            return {}
        return {str(path): str(self._copy) for path in (self._path, self._path.absolute(), self._path.resolve())}

    @property
    def environment(self) -> Mapping[str, str]:
        return {variable: text.replace("{store}", str(self.place)) for variable, text in self._variables.items()}

    def make(self) -> None:
        """Make the copy, and the state to which it is reset."""
        with self._one_line("cannot be copied"):
            path = self._path.resolve()
            self._check(path)
            self._original = OwnersStore(self.kind, path)
            if place := backup_left(str(path), self._original.content):
                raise ConfigError(
                    f"store {self.name!r}: {self._path} has changed since a probe copied it; restore it by "
                    f"`bench probe --clean`, or remove the backup, {printable(place)}"
                )
            self._place = Place(self._parent, self.name, PlaceNote(self.kind, str(path)))
            try:
                self._begin(path)
                if self._original.has_changed():
                    raise ConfigError(f"store {self.name!r}: {self._path} changed while it was copied; end what writes to it")
                self._place.note_backup(self._original.content)
            except BaseException:
                self._place.remove()
                self._place = None
                raise

    def remove(self) -> None:
        """Remove the copy. This can be called again."""
        if self._place is None:
            return
        if self._is_kept:
            remove_tree(self._own_place.folder / "copy")
            self._place.leave()
        else:
            self._place.remove()
        self._place = None

    def has_changed(self, *, surely: bool = False) -> bool:
        """Return whether the owner's file or folder is not as it was when it was copied."""
        del surely  # the stamps of files are exact
        if self._place is None or self._original is None:
            return False
        return self._original.has_changed()

    def keep_backup(self) -> str:
        """Leave the first state where it is when the copy is removed. Return where that is, and how it is restored."""
        self._is_kept = True
        return f"{printable(str(self._first))}; bench probe --clean restores it after a question"

    @abstractmethod
    def _check(self, path: Path) -> None:
        """Raise ConfigError if it cannot be copied from here."""

    @abstractmethod
    def _begin(self, path: Path) -> None:
        """Make the first state, and the copy."""

    @property
    def _copy(self) -> Path:
        """The path that replaces the owner's path."""
        if self._box == "outside":
            raise RuntimeError("the copy is in the box")
        if self._box:
            return self._path
        return self._own_place.folder / "copy" / self._path.resolve().name

    @property
    def _first(self) -> Path:
        return self._own_place.folder / "first"

    @property
    def _own_place(self) -> Place:
        if self._place is None:
            raise RuntimeError("the store has no copy: make() comes first")
        return self._place

    @contextmanager
    def _one_line(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"store {self.name!r}: {printable(str(self._path))} {what}: {one_line(str(error), 300)}"
            ) from error
