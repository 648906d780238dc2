"""What an agent knows, as a store: checkpoints, sessions, conversations. It is copied and reset, and no witness reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.common.paths import expanded_path
from bench.probe.run.witness.folder import check_links, restore
from bench.probe.run.witness.kinds import StoreKind, StoreSettings
from bench.probe.run.witness.path_store import PathStore
from bench.probe.run.witness.place import remove_tree
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.sqlite import BESIDE
from bench.record.probe_rows import StoreReading


class MemoryStore(PathStore):
    """A file or a folder in which the agent keeps what it knows. It may be absent until the agent makes it."""

    kind = "memory"

    def _check(self, path: Path) -> None:
        check_links(self.name, path)

    def _begin(self, path: Path) -> None:
        copy_with_journals(path, self._first)
        if not self._box:
            self.reset()

    def reset(self) -> None:
        """Bring the copy back to its first state."""
        with self._one_line("cannot be reset"):
            if self._box:
                restore_with_journals(self._first, self._copy)
            else:
                restore(self._first, self._copy.parent, self._first, self._copy.parent)

    def read(self, most: int) -> StoreReading:
        """Return a reading in which nothing differs, whatever the agent keeps."""
        del most
        return StoreReading("", ())

    def stamp(self) -> str:
        """Return the same for ever: what an agent knows is not read."""
        return ""


def copy_with_journals(path: Path, folder: Path) -> None:
    """Copy a file, with the journals that a database has beside it, or a folder into another folder, which is made."""
    folder.mkdir(exist_ok=True)
    for kept in (path.with_name(path.name + end) for end in ("", *BESIDE)):
        if kept.is_dir():
            restore(kept, folder / kept.name, kept, kept)
        elif kept.exists():
            shutil.copy2(kept, folder / kept.name)


def restore_with_journals(first: Path, path: Path) -> None:
    """Bring a file with its journals, or a folder, back to what `copy_with_journals` has copied."""
    for end in ("", *BESIDE):
        kept, target = first / f"{path.name}{end}", path.with_name(f"{path.name}{end}")
        if kept.is_dir():
            restore(kept, target, target, target)
        else:
            remove_tree(target)
            if kept.exists():
                shutil.copy2(kept, target)


def _of(store: StoreSettings, folder: Path, encoding: Encoding) -> MemoryStore:
    del encoding  # it is not read
    return MemoryStore(store.name, expanded_path(store.where), folder, store.variables)


KIND = StoreKind("memory", _of)
