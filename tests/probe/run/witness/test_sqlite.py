"""A SQLite database as a store: what is copied, what differs, what a reset brings back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.sqlite import SqliteStore
from bench.record.probe_rows import SEQUENCES, Cell

Change = tuple[str, str, dict[str, Cell] | None, dict[str, Cell] | None]


class Fixture:
    """A database with this content, and its store."""

    def __init__(self, folder: Path, script: str) -> None:
        self.source, self.copies = folder / "owner" / "shop ä.db", folder / "copies"
        self.source.parent.mkdir()
        self.sql(script, self.source)
        self.store = SqliteStore("shop", self.source, self.copies, Encoding(), {"DB": "sqlite:///{store}"})
        self.store.make()

    @property
    def copy(self) -> Path:
        return Path(self.store.replaces[str(self.source)])

    def sql(self, script: str, path: Path | None = None) -> None:
        with closing(sqlite3.connect(path or self.copy)) as database:
            database.executescript(script)

    def changes(self, most: int = 100) -> list[Change]:
        return [(row.table, row.key, row.before, row.after) for row in self.store.read(most).differences]  # type: ignore[misc]


@pytest.fixture
def made() -> Iterator[list[Fixture]]:
    fixtures: list[Fixture] = []
    yield fixtures
    for fixture in fixtures:
        fixture.store.remove()
        assert not any(fixture.copies.iterdir())


KEYED = """
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, cents INTEGER);
INSERT INTO account VALUES (1, 'Ada', 100), (2, 'Bo', 50);
"""


@pytest.fixture
def shop(tmp_path: Path, made: list[Fixture]) -> Fixture:
    made.append(Fixture(tmp_path, KEYED))
    return made[0]


def test_an_inserted_a_changed_and_a_deleted_row_are_told_by_their_key(shop: Fixture) -> None:
    shop.sql(
        "INSERT INTO account VALUES (3, 'Cy', 0); UPDATE account SET cents = 90 WHERE id = 1; DELETE FROM account WHERE id = 2"
    )
    assert shop.changes() == [
        ("account", "[1]", {"id": 1, "owner": "Ada", "cents": 100}, {"id": 1, "owner": "Ada", "cents": 90}),
        ("account", "[2]", {"id": 2, "owner": "Bo", "cents": 50}, None),
        ("account", "[3]", None, {"id": 3, "owner": "Cy", "cents": 0}),
    ]


def test_a_reset_brings_the_digest_back_and_the_owners_file_never_changes(shop: Fixture) -> None:
    before, first = shop.source.read_bytes(), shop.store.read(10)
    assert not first.differences
    shop.sql("PRAGMA journal_mode = WAL; DELETE FROM account; CREATE TABLE more (a)")
    assert shop.store.read(10).digest != first.digest
    shop.store.reset()
    assert shop.store.read(10) == first
    assert shop.source.read_bytes() == before


def test_a_change_that_was_undone_is_none(shop: Fixture) -> None:
    first = shop.store.read(10)
    shop.sql("UPDATE account SET cents = cents + 1; UPDATE account SET cents = cents - 1; VACUUM")
    assert shop.store.read(10) == first


def test_what_a_writer_has_committed_to_its_journal_is_copied_while_it_is_open(tmp_path: Path) -> None:
    (tmp_path / "owner").mkdir()
    source = tmp_path / "owner" / "s.db"
    with closing(sqlite3.connect(source)) as writer:
        writer.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (k INTEGER PRIMARY KEY, v)")
        writer.execute("INSERT INTO t VALUES (1, 'committed')")
        writer.commit()
        writer.execute("INSERT INTO t VALUES (2, 'open')")
        store = SqliteStore("s", source, tmp_path / "copies", Encoding(), {})
        store.make()
        copy = Path(store.replaces[str(source)])
        with closing(sqlite3.connect(copy)) as database:
            assert database.execute("SELECT * FROM t").fetchall() == [(1, "committed")]
        writer.commit()
        assert not store.read(10).differences
    store.remove()


OTHERS = """
CREATE VIRTUAL TABLE notes USING fts5(body);
CREATE TABLE p (k INTEGER PRIMARY KEY AUTOINCREMENT, v BLOB, twice GENERATED ALWAYS AS (k * 2) VIRTUAL);
CREATE TABLE "we ""ird" ("co l", [from]);
CREATE TABLE doc (id TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID;
INSERT INTO notes VALUES ('first'); INSERT INTO p (v) VALUES (x'00ff');
"""


def test_virtual_tables_counters_blobs_and_strange_names_are_told_by_their_content(tmp_path: Path, made: list[Fixture]) -> None:
    made.append(shop := Fixture(tmp_path, OTHERS))
    start = shop.store.read(100)
    shop.sql(
        "INSERT INTO notes (notes) VALUES ('optimize'); INSERT INTO notes VALUES ('x'); DELETE FROM notes WHERE body = 'x'"
    )
    assert shop.store.read(100) == start
    shop.sql(
        "INSERT INTO notes VALUES ('second'); INSERT INTO p (v) VALUES (NULL), (''); INSERT INTO \"we \"\"ird\" VALUES (1, 2.5)"
    )
    shop.sql("INSERT INTO doc VALUES ('a', 'b')")
    changes = {
        (table, key if table not in ("notes", 'we "ird') else ""): (before, after)
        for table, key, before, after in shop.changes()
    }
    assert changes == {
        ("notes", ""): (None, {"body": "second"}),
        ("p", "[2]"): (None, {"k": 2, "v": None}),
        ("p", "[3]"): (None, {"k": 3, "v": ""}),
        (SEQUENCES, '["p"]'): ({"name": "p", "seq": 1}, {"name": "p", "seq": 3}),
        ('we "ird', ""): (None, {"co l": 1, "from": 2.5}),
        ("doc", '["a"]'): (None, {"id": "a", "body": "b"}),
    }


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_text("no database" * 100)
    with pytest.raises(ConfigError, match=r"^store 's': .*s.db cannot be copied: file is not a database$"):
        SqliteStore("s", tmp_path / "s.db", tmp_path / "copies", Encoding(), {}).make()
    assert not any((tmp_path / "copies").iterdir())
