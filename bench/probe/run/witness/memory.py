"""The agent's memory as a store: checkpoints, sessions, conversations. It is copied and reset, but not read."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.common.paths import expanded_path
from bench.probe.run.witness.folder import check_links, restore
from bench.probe.run.witness.kinds import StoreKind, StoreSettings
from bench.probe.run.witness.path_store import PathStore
from bench.probe.run.witness.place import remove_tree
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.sqlite import JOURNAL_SUFFIXES
from bench.record.probe_rows import StoreReading


class MemoryStore(PathStore):
    """A file or a folder in which the agent keeps its memory. The agent may make it only later."""

    kind = "memory"

    def _check(self, path: Path) -> None:
        check_links(self.name, path)

    def _copy_first_state(self, path: Path) -> None:
        """Save the first state with its journals, and make the copy."""
        copy_with_journals(path, self._first)
        if not self._box:
            self.reset()

    def reset(self) -> None:
        """Reset the copy to its first state."""
        with self._errors_in_one_line("cannot be reset"):
            if self._box:
                restore_with_journals(self._first, self._copy)
            else:
                restore(self._first, self._copy.parent, self._first, self._copy.parent)

    def read(self, most: int) -> StoreReading:
        """Return an empty reading, since the memory is not read."""
        del most
        return StoreReading("", ())

    def stamp(self) -> str:
        """Return a constant, since the memory is not read."""
        return ""


def copy_with_journals(path: Path, folder: Path) -> None:
    """Copy a file and its database journals, or a folder, into `folder`, which is made if it is missing."""
    folder.mkdir(exist_ok=True)
    for source in (path.with_name(path.name + suffix) for suffix in ("", *JOURNAL_SUFFIXES)):
        if source.is_dir():
            restore(source, folder / source.name, source, source)
        elif source.exists():
            shutil.copy2(source, folder / source.name)


def restore_with_journals(first: Path, path: Path) -> None:
    """Restore a file and its journals, or a folder, from the copy that `copy_with_journals` has made in `first`."""
    for suffix in ("", *JOURNAL_SUFFIXES):
        source, target = first / f"{path.name}{suffix}", path.with_name(f"{path.name}{suffix}")
        if source.is_dir():
            restore(source, target, target, target)
        else:
            remove_tree(target)
            if source.exists():
                shutil.copy2(source, target)


def _make_store(store: StoreSettings, folder: Path, encoding: Encoding) -> MemoryStore:
    del encoding  # it is not read
    return MemoryStore(store.name, expanded_path(store.where), folder, store.variables)


KIND = StoreKind("memory", _make_store)
