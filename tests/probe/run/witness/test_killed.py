"""Whoever is killed while it works on a store leaves the owner's data as they were, or to be restored by the next command."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bench.common.paths import state_folder
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import CopyNote, PrivateFolder, new_name, notes, remove_note, save_note
from bench.probe.run.witness.stores import orphans

WORKER = """
import asyncio, os, resource, signal, sqlite3, sys
from pathlib import Path
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores

kind, copies, last, *works = sys.argv[1:]
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.symlink", "os.utime", "sqlite3.connect"}

def begin(step):
    # Each file that is opened for writing, moved, removed or changed is a step.
    def count(event, arguments):
        if event in CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            steps.append(event)
            if len(steps) == step:
                os.kill(os.getpid(), signal.SIGKILL)

    if step == -1:  # in the middle of a write
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    sys.addaudithook(count)

async def work(where, step):
    stores = Stores.of([StoreSettings("s", kind, where)], Path(copies), 0)
    if last == "make":
        begin(step)
    await stores.make()
    target = Path(stores.replaces[where])
    if kind == "sqlite":
        database = sqlite3.connect(target)
        database.executescript("DELETE FROM t WHERE k > 900; UPDATE t SET a = 'agent'; CREATE TABLE more (x)")
        database.close()
    else:
        (target / "a").write_text("agent")
        (target / "big").unlink()
        (target / "new").write_text("agent")
        (target / "sub" / "b").unlink()
    if last == "make":
        return
    begin(step)
    await (stores.reset() if last == "reset" else stores.remove())

for where, step in zip(works[::2], works[1::2]):
    if not (child := os.fork()):
        steps = []
        asyncio.run(work(where, int(step)))
        print(len(steps), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def owners_store(kind: str, folder: Path) -> Path:
    folder.mkdir()
    path = folder / "store"
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a)")
            database.executemany("INSERT INTO t VALUES (?, ?)", ((number, "x" * 100) for number in range(1000)))
            database.commit()
    else:
        (path / "sub").mkdir(parents=True)
        (path / "big").write_bytes(b"x" * 100_000)
        (path / "a").write_text("a")
        (path / "sub" / "b").write_text("b")
        (path / "sub" / "b").chmod(0o600)
    return path


def content_of(kind: str, path: Path) -> object:
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as database:
            return list(database.iterdump())
    return {str(item.relative_to(path)): (item.is_file() and item.read_text(), item.stat().st_mode) for item in path.rglob("*")}


def run(kind: str, copies: Path, last: str, works: list[tuple[Path, int]]) -> list[int]:
    """Return, of each store that is worked on in a process that dies at a step, how the process ended."""
    words = [sys.executable, "-c", WORKER, kind, str(copies), last, *(str(word) for work in works for word in work)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not ended.returncode, ended.stderr
    return [int(line) for line in ended.stdout.split()]


@pytest.mark.parametrize("last", ["make", "reset", "remove"])
@pytest.mark.parametrize("kind", ["sqlite", "folder"])
def test_a_kill_at_any_step_leaves_the_owners_data_and_what_the_next_command_removes(
    kind: str, last: str, tmp_path: Path
) -> None:
    path, copies = owners_store(kind, tmp_path / "owner"), tmp_path / "copies"
    expected = content_of(kind, path)
    steps, ended = run(kind, copies, last, [(path, 0)])
    assert (steps >= 3, ended) == (True, 0)
    works = [(path, step) for step in (-1, *range(1, steps + 1))]
    killed = run(kind, copies, last, works).count(-signal.SIGKILL)
    assert killed >= steps - 1  # names differ from time to time, and with them the number of steps
    assert content_of(kind, path) == expected and [item.name for item in path.parent.iterdir()] == ["store"]
    assert not list(orphans([StoreSettings("s", kind, str(tmp_path / "other"))]))
    left = list(orphans([StoreSettings("s", kind, str(path))]))
    assert len(left) >= killed / 2
    for orphan in left:
        assert Path(orphan.note.place).name.startswith("recovery-bench-probe-s-") and not orphan.restores
        orphan.clean()
    assert content_of(kind, path) == expected and not any(copies.iterdir())


def test_what_is_held_or_was_not_noted_by_a_probe_of_this_user_is_no_orphan(tmp_path: Path) -> None:
    held, store = PrivateFolder(tmp_path, "s"), tmp_path / "store.db"
    owners_store("sqlite", tmp_path / "owner").rename(store)
    for number, name in enumerate(("mine", "s-1-0123456789ab", "s-4194305-0123456789ab")):
        planted = tmp_path / f"recovery-bench-probe-{name}"
        planted.mkdir()
        (planted / "restores").write_text(f"sqlite\n{store}")
        (planted / "first").write_text(f"planted {number}")
    assert not list(orphans([StoreSettings("s", "sqlite", str(store))]))
    note = next(iter((tmp_path / "state" / "recovery-bench" / "probe").iterdir()))
    written = note.read_text().replace(note.name, "recovery-bench-probe-s-4194305-0123456789ab")
    writable = note.with_name("recovery-bench-probe-s-4194305-0123456789ab")
    writable.write_text(written)
    assert len(list(orphans([]))) == 1
    writable.chmod(0o666)
    assert not list(orphans([]))
    held.remove()


@pytest.fixture(autouse=True)
def _own_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the probes of a test note is noted for this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state" / "recovery-bench" / "probe").mkdir(parents=True)  # the first probe makes it, in steps of its own


FULL = """
import asyncio, resource, signal, sys
from pathlib import Path
from bench.common.errors import ConfigError
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
kind, where, copies = sys.argv[1:]
stores = Stores.of([StoreSettings("s", kind, where)], Path(copies), 0)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    asyncio.run(stores.make())
except ConfigError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["sqlite", "folder"])
def test_a_full_disk_is_one_line_and_leaves_nothing(kind: str, tmp_path: Path) -> None:
    path = owners_store(kind, tmp_path / "owner")
    expected = content_of(kind, path)
    words = [sys.executable, "-c", FULL, kind, str(path), str(tmp_path / "copies")]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.stdout.startswith("store 's': "), ended.stderr
    assert ended.stdout.count("\n") == 1
    assert not ended.stderr
    assert [item.name for item in path.parent.iterdir()] == ["store"]
    assert not (tmp_path / "copies").exists() or not any((tmp_path / "copies").iterdir())
    assert content_of(kind, path) == expected


@pytest.mark.parametrize("part", ["place", "store"])
def test_a_note_that_holds_what_no_path_can_counts_for_nothing(tmp_path: Path, part: str) -> None:
    name = new_name("bank")
    parts = {"place": str(tmp_path / name), "kind": "folder", "store": str(tmp_path), "content": "0"}
    save_note(CopyNote(**parts))
    try:
        assert parts["place"] in {known.place for known in notes()}
        note = state_folder() / "probe" / name
        note.write_text(json.dumps(parts | {part: f"/tmp/\0/{name}"}), encoding="utf-8")
        assert name not in {Path(known.place).name for known in notes()}
        assert not list(orphans([StoreSettings("bank", "folder", str(tmp_path))]))
    finally:
        remove_note(parts["place"])
