"""A change of what an owner named is seen, whoever made it, and a backup of it can be restored."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bench.common.errors import ConfigError, OriginalChanged
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.originals import OwnersStore, content_of
from bench.probe.run.witness.sqlite import restore
from bench.probe.run.witness.stores import Stores, orphans


@pytest.fixture(autouse=True)
def _own_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the probes of a test note is noted for this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def database(path: Path, *statements: str, journal: str = "delete") -> None:
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"PRAGMA journal_mode = {journal}")
        for statement in statements or ("CREATE TABLE t (k INTEGER PRIMARY KEY, v)", "INSERT INTO t VALUES (1, 'a')"):
            made.execute(statement)
        made.commit()


def rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as opened:
        return list(opened.iterdump())


def files(path: Path) -> dict[str, tuple[int, str]]:
    """Return the mode and the digest of each file of a folder."""
    return {
        str(file.relative_to(path)): (
            file.lstat().st_mode,
            hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "",
        )
        for file in path.rglob("*")
    }


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (2, 'b')",
        "UPDATE t SET v = 'b'",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON t (v)",
        "DELETE FROM t",
    ],
)
def test_a_statement_that_changes_a_database_is_seen_also_in_its_journal(tmp_path: Path, statement: str, journal: str) -> None:
    path = tmp_path / "a.db"
    database(path, journal=journal)
    original = OwnersStore("sqlite", path)
    assert not original.has_changed()
    with closing(sqlite3.connect(path)) as writer:  # open, so that the journal is not taken over
        writer.execute(statement)
        writer.commit()
        assert (tmp_path / "a.db-wal").exists() == (journal == "wal")
        assert original.has_changed()
    assert original.has_changed()


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_what_changes_no_row_is_no_change_of_a_database(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "a.db"
    database(path, journal=journal)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO t VALUES (2, 'b')")
        writer.commit()
        original = OwnersStore("sqlite", path)
    assert not original.has_changed()  # its journal was taken over
    rows(path)
    path.touch()
    database(path, "SELECT 1", journal="wal")
    assert not original.has_changed()


def test_a_restored_database_has_the_content_of_its_backup_whatever_its_bytes(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.db", tmp_path / "b.db"
    database(path)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    first, expected = content_of("sqlite", path), rows(path)
    database(path, "DELETE FROM t", *(f"INSERT INTO t VALUES ({number}, '{'x' * 900}')" for number in range(50)))
    assert content_of("sqlite", path) != first
    restore(backup, path)
    assert (content_of("sqlite", path), rows(path)) == (first, expected)


FOLDER_CHANGES: dict[str, Callable[[Path], object]] = {
    "content of the same size": lambda folder: (folder / "sub" / "b").write_text("B"),
    "mode": lambda folder: (folder / "a").chmod(0o640),
    "new file": lambda folder: (folder / "sub" / "new").touch(),
    "file gone": lambda folder: (folder / "a").unlink(),
    "link elsewhere": lambda folder: (folder / "other").replace(folder / "link"),
    "all gone": lambda folder: folder.rename(folder.with_name("gone")),
}


@pytest.mark.parametrize("change", FOLDER_CHANGES)
def test_a_change_of_a_folder_is_seen_also_if_its_times_are_set_back(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "files"
    (folder / "sub").mkdir(parents=True)
    (folder / "a").write_text("a")
    (folder / "sub" / "b").write_text("b")
    (folder / "link").symlink_to("a")
    (folder / "other").symlink_to("sub")
    original, times = OwnersStore("folder", folder), (folder / "sub" / "b").stat()
    (folder / "a").touch()
    assert not original.has_changed()
    FOLDER_CHANGES[change](folder)
    if (folder / "sub" / "b").exists():
        os.utime(folder / "sub" / "b", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert original.has_changed()


def test_a_memory_that_was_absent_and_appears_has_changed(tmp_path: Path) -> None:
    original = OwnersStore("memory", tmp_path / "state.json")
    assert not original.has_changed()
    (tmp_path / "state.json").touch()
    assert original.has_changed()


def made(kind: str, folder: Path) -> Path:
    """Make an owner's store, and return its path."""
    path = folder / "owner" / "store"
    path.parent.mkdir(exist_ok=True)
    if kind == "sqlite":
        database(path)
    elif kind == "folder":
        path.mkdir()
        (path / "a").write_text("a")
    else:
        path.write_text("a")
    return path


def damage(kind: str, path: Path) -> None:
    if kind == "sqlite":
        database(path, "INSERT INTO t VALUES (2, 'agent')")
    else:
        (path / "a" if kind == "folder" else path).write_text("agent")


def content(kind: str, path: Path) -> object:
    return rows(path) if kind == "sqlite" else files(path if kind == "folder" else path.parent)


@pytest.mark.parametrize("kind", ["sqlite", "folder", "file", "memory"])
def test_a_store_that_was_changed_is_told_once_and_restored_only_when_the_owner_says_so(tmp_path: Path, kind: str) -> None:
    path = made(kind, tmp_path)
    before, settings = content(kind, path), [StoreSettings("s", kind, str(path))]
    stores = Stores.of(settings, tmp_path / "copies", 0.01)
    asyncio.run(stores.make())
    asyncio.run(stores.check_originals("in clean run 1"))
    damage(kind, path)
    damaged = content(kind, path)
    with pytest.raises(
        OriginalChanged, match=r"^store 's' itself changed in clean run 2, .*; a backup of it is .*first; bench pr"
    ):
        asyncio.run(stores.check_originals("in clean run 2"))
    assert not list(orphans(settings))  # it is held
    asyncio.run(stores.remove())
    assert content(kind, path) == damaged
    (orphan,) = orphans(settings)
    assert orphan.restores and "restore" in orphan.plan and not list(orphans([StoreSettings("s", kind, "elsewhere")]))
    line = orphan.clean()
    assert content(kind, path) == before and not list(orphans(settings))
    aside = Path(line.partition("what it held before is ")[2])
    if kind == "sqlite":
        assert rows(aside) == damaged
    else:
        assert (aside / "a" if kind == "folder" else aside).read_text() == "agent"


def test_a_store_that_changes_after_the_last_run_is_told_when_its_copy_is_removed(tmp_path: Path) -> None:
    path = made("file", tmp_path)
    stores = Stores.of([StoreSettings("s", "file", str(path))], tmp_path / "copies", 0.01)
    asyncio.run(stores.make())
    damage("file", path)
    with pytest.raises(OriginalChanged, match="changed after its last run"):
        asyncio.run(stores.remove())
    assert path.read_text() == "agent"
    asyncio.run(stores.remove())


def test_a_restored_memory_that_was_absent_is_absent(tmp_path: Path) -> None:
    path, settings = tmp_path / "state.json", [StoreSettings("s", "memory", str(tmp_path / "state.json"))]
    stores = Stores.of(settings, tmp_path / "copies", 0.01)
    asyncio.run(stores.make())
    path.write_text("learned")
    with pytest.raises(OriginalChanged):
        asyncio.run(stores.remove())
    (orphan,) = orphans(settings)
    orphan.clean()
    assert not path.exists()


def test_a_state_folder_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    stores = Stores.of([StoreSettings("s", "file", str(made("file", tmp_path)))], tmp_path / "copies", 0.01)
    with pytest.raises(ConfigError, match=r"which cannot be written .*; set XDG_STATE_HOME to another"):
        asyncio.run(stores.make())
    assert not any((tmp_path / "copies").iterdir())


def test_what_the_probe_writes_into_a_folder_that_is_a_store_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made("folder", tmp_path)
    monkeypatch.chdir(path)
    original = OwnersStore("folder", path)
    (path / "results" / "agent-probe").mkdir(parents=True)
    (path / "results" / "agent-probe" / "trials.jsonl").touch()
    (path / "reports").mkdir()
    assert not original.has_changed()
    (path / "reports.txt").touch()
    assert original.has_changed()
    assert (path / "results" / "agent-probe" / "trials.jsonl").exists()
