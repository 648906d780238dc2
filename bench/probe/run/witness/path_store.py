"""The common part of stores that are files or folders: the place of the copy, and how the copy is made, handed over and
removed."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.common.errors import ConfigError, one_line
from bench.probe.run.witness.place import Place, claimed_place
from bench.probe.run.witness.rows import printable
from bench.record.probe.rows import StoreReading


class PathStore(ABC):
    """A file or a folder that the owner named.

    Args:
        name: The owner's name for it.
        path: Where it is, as the owner wrote it.
        folder: Where the copy is made.
        variables: Variables that hand the copy over; `{store}` in a value is its path.
        in_place: Work on the owner's own, after a backup whose restore was tested.
    """

    def __init__(self, name: str, path: Path, folder: Path, variables: Mapping[str, str], in_place: bool = False) -> None:
        self.name, self._path, self._parent = name, path, folder
        self._variables, self._in_place = variables, in_place
        self._place: Place | None = None

    @property
    def replaces(self) -> Mapping[str, str]:
        if self._in_place:
            return {}
        return {str(path): str(self._copy) for path in (self._path, self._path.absolute(), self._path.resolve())}

    @property
    def environment(self) -> Mapping[str, str]:
        return {variable: text.replace("{store}", str(self._copy)) for variable, text in self._variables.items()}

    def make(self) -> None:
        """Make the copy, and the state to which it is reset. In place: make the backup, and test that it can be restored."""
        with self._one_line("cannot be copied"):
            path = self._path.resolve()
            self._check(path)
            self._place = claimed_place(path) if self._in_place else Place(self._parent, self.name)
            try:
                self._begin(path)
            except BaseException:
                self._place.remove()
                self._place = None
                raise

    def stamp(self) -> Hashable:
        """Return None: nobody can tell whether something was written."""
        return None

    def recheck(self) -> None:  # noqa: B027  most kinds need not
        """Read all of it at the next reading, whatever the system says that was written."""

    @abstractmethod
    def read(self, most: int) -> StoreReading:
        """Return the digest of its content, and what differs from the first state, at most `most` rows."""

    def snapshot(self, most: int) -> Callable[[], StoreReading]:
        """Return the function that returns what was read now."""
        reading = self.read(most)
        return lambda: reading

    def remove(self) -> None:
        """Remove the copy, or restore what the owner named. This can be called again."""
        if self._place is None:
            return
        if self._in_place:
            with self._one_line(f"cannot be restored; its backup is {self._first}"):
                self._restore()
        self._place.remove()
        self._place = None

    @abstractmethod
    def _check(self, path: Path) -> None:
        """Raise ConfigError if it cannot be copied from here."""

    @abstractmethod
    def _begin(self, path: Path) -> None:
        """Make the first state, and the copy."""

    @abstractmethod
    def _restore(self) -> None:
        """Bring the content at `_copy` back to the first state."""

    @property
    def _copy(self) -> Path:
        """The path that replaces the owner's path."""
        path = self._path.resolve()
        return path if self._in_place else self._made.folder / "copy" / path.name

    @property
    def _first(self) -> Path:
        return self._made.folder / "first"

    @property
    def _made(self) -> Place:
        if self._place is None:
            raise RuntimeError("the store has no copy: make() comes first")
        return self._place

    def _differed(self) -> ConfigError:
        return ConfigError(f"store {self.name!r}: its backup was restored for a test and differed; nothing was changed")

    @contextmanager
    def _one_line(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"store {self.name!r}: {printable(str(self._path))} {what}: {one_line(str(error), 300)}"
            ) from error
