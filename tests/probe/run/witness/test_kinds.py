"""Each kind of store keeps one contract, and another package's kind needs nothing of ours but an entry point."""

from __future__ import annotations

import asyncio
import os
import socketserver
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from plugged import install, plugged

from bench.common.errors import ConfigError
from bench.probe.run.preview import plan_lines
from bench.probe.run.secrets import Secrets
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.witness.kinds import STORE_KINDS, StoreSettings
from bench.probe.run.witness.stores import Stores

PACKAGE = Path(__file__).parents[3] / "redis_package"
PASSWORD = "orchard-gate-4711"


class _Redis(socketserver.StreamRequestHandler):
    """The part of Redis that the package uses, with a password."""

    def handle(self) -> None:
        databases: dict[str, dict[str, str]] = self.server.databases  # type: ignore[attr-defined]
        database, is_known = databases.setdefault("0", {}), False
        while head := self.rfile.readline():
            words = []
            for _ in range(int(head[1:])):
                length = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(length + 2)[:-2].decode())
            command, *rest = words
            if command == "AUTH":
                is_known = rest == [PASSWORD]
            if not is_known:
                self.wfile.write(b"-NOAUTH Authentication required.\r\n")
                continue
            if command == "SELECT":
                database = databases.setdefault(rest[0], {})
            elif command == "SET":
                database[rest[0]] = rest[1]
            elif command == "FLUSHDB":
                database.clear()
            if command == "KEYS":
                self.wfile.write(
                    b"*%d\r\n" % len(database) + b"".join(b"$%d\r\n%s\r\n" % (len(k), k.encode()) for k in database)
                )
            elif command == "GET":
                self.wfile.write(b"$%d\r\n%s\r\n" % (len(database[rest[0]]), database[rest[0]].encode()))
            else:
                self.wfile.write(b"+OK\r\n")


@pytest.fixture
def databases() -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    """The address of a Redis, and what is in its databases."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Redis) as server:
        server.daemon_threads = True
        server.databases = {"0": {"balance": "100"}}  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"redis://:{PASSWORD}@127.0.0.1:{server.server_address[1]}/0", server.databases  # type: ignore[attr-defined]
        server.shutdown()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[None]:
    """The package that brings Redis, as if it was installed."""
    text = (PACKAGE / "redis_store.py").read_text()
    install(
        tmp_path / "site", "redis-store", {"recovery_bench.stores": {"redis": "redis_store:KIND"}}, {"redis_store.py": text}
    )
    with plugged(tmp_path / "site"):
        yield


def _owners(kind: str, folder: Path, address: str) -> str:
    """Return where a store of the owner's is, which was made."""
    where = folder / "owners"
    if kind == "redis":
        return address
    if kind == "sqlite":
        with closing(sqlite3.connect(where)) as database:
            database.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'a')")
    elif kind == "folder":
        where.mkdir()
        (where / "a").write_text("a")
    else:
        where.write_text("a")
    return str(where)


def _write(kind: str, where: str, databases: dict[str, dict[str, str]]) -> None:
    """Write to a store, past everything of ours."""
    if kind == "redis":
        databases[where.rpartition("/")[2]]["balance"] = "60"
    elif kind == "sqlite":
        with closing(sqlite3.connect(where)) as database:
            database.execute("INSERT INTO t VALUES (2, 'b')")
            database.commit()
    else:
        (Path(where) / "b" if kind == "folder" else Path(where)).write_text("another")


@pytest.mark.usefixtures("redis")
@pytest.mark.parametrize("kind", ["sqlite", "folder", "file", "memory", "redis"])
def test_a_copy_of_each_kind_is_handed_over_read_reset_and_removed(
    kind: str, tmp_path: Path, databases: tuple[str, dict[str, dict[str, str]]]
) -> None:
    where = _owners(kind, tmp_path, databases[0])
    stores = Stores.of([StoreSettings("s", kind, where, {"PLACE": "{store}"})], tmp_path / "copies", 0.01)
    asyncio.run(stores.make())
    try:
        copy = stores.environment["PLACE"]
        assert copy == stores.replaces[where] != where
        first = asyncio.run(stores.read())
        _write(kind, copy, databases[1])
        stores.recheck()
        changed = asyncio.run(stores.read())
        assert bool(changed.differences) == (changed.digest != first.digest) == (kind != "memory")
        asyncio.run(stores.check_originals("then", surely=True))
        asyncio.run(stores.reset())
        assert asyncio.run(stores.read()) == first
        _write(kind, where, databases[1])
        with pytest.raises(ConfigError, match="changed then"):
            asyncio.run(stores.check_originals("then", surely=True))
    finally:
        asyncio.run(stores.remove())
    assert not databases[1].get("9")
    assert set(STORE_KINDS.names) == {"sqlite", "folder", "file", "memory", "redis", "postgres", "mail", "webhook"}


@pytest.mark.usefixtures("redis")
def test_a_password_in_the_address_of_a_strangers_kind_is_in_no_output(
    tmp_path: Path, databases: tuple[str, dict[str, dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "probe.toml").write_text('agent = "true"\n[[store]]\nredis = "$PLACE"\nvariable = "REDIS_URL"\n')
    settings = ProbeSettings(Path("probe.toml"), {"PLACE": databases[0], "PATH": os.defpath})
    assert [(store.kind, store.where) for store in settings.stores] == [("redis", databases[0])]
    assert PASSWORD not in "\n".join(plan_lines(settings, {}))
    hidden = Secrets.of(settings.subject, {}, settings.secret_addresses)
    assert PASSWORD not in hidden.blot(f"redis at {databases[0]} refuses {PASSWORD}")


@pytest.mark.usefixtures("redis")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('redis = "redis://far.example:6379/0"', "far.example, not on this machine"),
        ('redis = "redis://127.0.0.1:1/0"\nignore = ["x"]', "a store of kind redis takes name, variable only"),
        ('redis = "redis://127.0.0.1:1/0"\nfolder = "."', "a store is one of"),
        ('rediss = "x"', "no witness reads rediss"),
    ],
)
def test_a_store_of_a_strangers_kind_is_refused_as_ours_are(
    line: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "probe.toml").write_text(f'agent = "true"\n[[store]]\n{line}\n')
    with pytest.raises(ConfigError, match=why):
        ProbeSettings(Path("probe.toml"))
