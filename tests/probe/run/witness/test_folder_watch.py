"""What the kernel says of a folder leads to the same reading as a walk through all of it."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.probe.run.witness.folder import FolderStore
from bench.probe.run.witness.folder_watch import FolderWatch
from bench.probe.run.witness.rows import Encoding

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FolderStore]:
    for name in ("a/1", "a/2", "b/3"):
        path = tmp_path / "own" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    made = FolderStore("files", tmp_path / "own", tmp_path / "copies", Encoding(), {"ROOT": "{store}"})
    made.make()
    yield made
    made.remove()


def act(root: Path, number: int, choose: random.Random) -> None:
    """Do something to a file, a link or a folder."""
    there = sorted(root.rglob("*"))
    files = [path for path in there if path.is_file() and not path.is_symlink()]
    folders = [path for path in there if path.is_dir() and not path.is_symlink()]
    file, folder = choose.choice([*files, None]), choose.choice([*folders, None])
    match choose.randrange(9):
        case 0 if file:
            file.write_text(f"again {number}")
        case 1:
            (folder or root).joinpath(f"f{number}").touch()
        case 2:
            deep = (folder or root) / f"d{number}" / "deep"
            deep.mkdir(parents=True)
            (deep / "f").write_text("deep")
        case 3 if file:
            file.unlink()
        case 4 if folder:
            shutil.rmtree(folder)
        case 5 if folder:
            folder.rename(root / f"moved{number}")
        case 6 if file:
            file.rename(root / f"renamed{number}")
        case 7 if file:
            file.chmod(choose.choice([0o600, 0o640]))
        case _:
            (folder or root).joinpath(f"l{number}").symlink_to("a/1")


def seen(root: Path) -> dict[str, tuple[int, bytes | str | None]]:
    """Return all that stands below a folder, by another way: without the store."""
    entries = dict[str, tuple[int, bytes | str | None]]()
    for path in root.rglob("*"):
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        entries[str(path.relative_to(root))] = path.lstat().st_mode, content
    return entries


@pytest.mark.parametrize("seed", range(6))
def test_a_reading_of_what_was_touched_shows_all_that_differs(store: FolderStore, seed: int) -> None:
    root, choose = Path(store.environment["ROOT"]), random.Random(seed)
    first, before = store.read(1000), seen(root)
    readings = {first.digest: before}
    for number in range(60):
        for more in range(choose.randrange(3)):
            act(root, 10 * number + more, choose)
        reading, now = store.read(1000), seen(root)
        differing = {path for path in {*before, *now} if before.get(path) != now.get(path)}
        assert {row.key for row in reading.differences} == differing
        assert readings.setdefault(reading.digest, now) == now
    store.reset()
    assert store.read(1000) == first and seen(root) == before


def test_a_stamp_is_new_once_something_was_written_and_else_the_same(store: FolderStore) -> None:
    root = Path(store.environment["ROOT"])
    store.read(9)
    stamps = [store.stamp(), store.stamp()]
    (root / "a" / "1").read_text()
    stamps.append(store.stamp())
    (root / "a" / "1").write_text("more")
    stamps.append(store.stamp())
    assert stamps[0] == stamps[1] == stamps[2] != stamps[3] and None not in stamps


def test_only_what_was_touched_is_looked_at(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(store.environment["ROOT"])
    store.read(9)
    looked = list[Path]()
    content_of = store._content_of

    def noted(path: Path) -> tuple[int, str]:
        looked.append(path)
        return content_of(path)

    monkeypatch.setattr(store, "_content_of", noted)
    (root / "b" / "3").write_text("other")
    assert [row.key for row in store.read(9).differences] == ["b/3"] and looked == [root / "b" / "3"]


def test_without_a_watch_every_reading_walks_through_all(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: FolderWatch, root: Path) -> None:
        raise OSError(f"no watch is left for {root}")

    monkeypatch.setattr(FolderWatch, "__init__", refuse)
    root = Path(store.environment["ROOT"])
    assert not store.read(9).differences and store.stamp() is None
    (root / "a" / "new").touch()
    assert [row.key for row in store.read(9).differences] == ["a/new"]


def test_a_folder_that_is_removed_as_its_watch_begins_ends_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, scandir = FolderWatch(tmp_path), os.scandir
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").touch()

    def remove_and_scan(path: Path) -> Iterator[os.DirEntry[str]]:
        (path / "file").unlink()
        path.rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", remove_and_scan)
    assert watch.changed_paths() is None
    watch.close()
