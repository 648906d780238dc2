"""What an agent knows, as a store: checkpoints, sessions, conversations. It is copied and reset, and no witness reads it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.common.errors import ConfigError, one_line
from bench.record.probe.rows import StoreReading
from bench.run.witness.folder import restore
from bench.run.witness.place import Place
from bench.run.witness.rows import printable

_BESIDE = ("-wal", "-shm", "-journal")
"""Ends of the files that a SQLite database has beside it."""


class MemoryStore:
    """A file or a folder in which the agent keeps what it knows. It may be absent until the agent makes it.

    Args:
        name: The owner's name for it.
        path: Where it is, as the owner wrote it.
        folder: Where the copy is made.
        variables: Variables that hand the copy over; `{store}` in a value is its path.
    """

    def __init__(self, name: str, path: Path, folder: Path, variables: Mapping[str, str]) -> None:
        self.name, self._path, self._parent, self._variables = name, path, folder, variables
        self._place: Place | None = None

    @property
    def replaces(self) -> Mapping[str, str]:
        return {
            str(path): str(self._copy / self._path.name) for path in (self._path, self._path.absolute(), self._path.resolve())
        }

    @property
    def environment(self) -> Mapping[str, str]:
        copy = str(self._copy / self._path.name)
        return {variable: text.replace("{store}", copy) for variable, text in self._variables.items()}

    def make(self) -> None:
        """Copy what is there now, and make the copy that the agent gets."""
        with self._one_line("cannot be copied"):
            self._place = Place(self._parent, self.name)
            try:
                self._first.mkdir()
                for path in (self._path, *(self._path.with_name(self._path.name + end) for end in _BESIDE)):
                    if path.is_dir():
                        restore(path.resolve(), self._first / path.name, path.resolve(), path.resolve())
                    elif path.exists():
                        shutil.copy2(path, self._first / path.name)
                self.reset()
            except BaseException:
                self._place.remove()
                self._place = None
                raise

    def reset(self) -> None:
        """Bring the copy back to its first state."""
        with self._one_line("cannot be reset"):
            restore(self._first, self._copy, self._first, self._copy)

    def read(self, most: int) -> StoreReading:
        """Return a reading in which nothing differs, whatever the agent keeps."""
        del most
        return StoreReading("", ())

    def has_changed(self) -> bool:
        """Return False: nobody reads what an agent knows."""
        return False

    def remove(self) -> None:
        """Remove the copy. This can be called again."""
        if self._place is not None:
            self._place.remove()
            self._place = None

    @property
    def _copy(self) -> Path:
        return self._made.folder / "copy"

    @property
    def _first(self) -> Path:
        return self._made.folder / "first"

    @property
    def _made(self) -> Place:
        if self._place is None:
            raise RuntimeError("the store has no copy: make() comes first")
        return self._place

    @contextmanager
    def _one_line(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(
                f"store {self.name!r}: {printable(str(self._path))} {what}: {one_line(str(error), 300)}"
            ) from error
