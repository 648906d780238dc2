"""A world that is made again of a run's files: the files may be a stranger's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from little_worlds import REFUNDS

from bench.worlds.run.environment import CannotRestore, World, final, final_world
from bench.worlds.run.environment.final import content_of

TABLE = "CREATE TABLE t (a);"


def test_a_world_is_made_again_of_its_sql() -> None:
    assert REFUNDS.environment
    world = World(REFUNDS.environment)
    world.call("read_order", {"order": 1})
    again = final_world(content_of(world.dump()))
    assert again.journal == tuple(world.journal()) and len(again.journal) == 1
    assert again.now == world.now


def test_tables_with_all_that_a_pack_may_declare_are_made_again() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(
            """CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT CHECK (length(b) > 0), c AS (b || '!'));
            CREATE TABLE other (a INTEGER REFERENCES a (id) ON DELETE CASCADE) STRICT;
            INSERT INTO a (b) VALUES ('x\ny'), ('ü'); INSERT INTO other VALUES (1);
            CREATE UNIQUE INDEX upper_b ON a (upper(b)) WHERE b IS NOT NULL;
            CREATE VIEW both AS SELECT * FROM a JOIN other ON a = id;
            CREATE TRIGGER counts AFTER INSERT ON a BEGIN UPDATE other SET a = new.id; END;"""
        )
        dump = "\n".join(connection.iterdump())
        rows = connection.execute("SELECT * FROM both").fetchall()
    database = sqlite3.connect(":memory:")
    database.deserialize(content_of(dump))
    assert database.execute("SELECT * FROM both").fetchall() == rows != []
    database.close()
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH '{path}' AS x; CREATE TABLE x.t (a);",
        "VACUUM INTO '{path}';",
        "INSERT INTO t SELECT 1;",
        "INSERT INTO t VALUES (load_extension('{path}'));",
        "PRAGMA user_version = 1;",
        "PRAGMA writable_schema = ON;",
        "CREATE VIRTUAL TABLE v USING fts5(a);",
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 9;",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t; END; INSERT INTO t VALUES (1);",
        "INSERT INTO t VALUES (zeroblob(100000000));",
        "DROP TABLE t;",
        "UPDATE t SET a = 1;",
        "no SQL",
        "\0",
        "half \ud800 a pair",
    ],
)
def test_sql_that_does_anything_else_is_refused_and_touches_no_file(sql: str, tmp_path: Path) -> None:
    with pytest.raises(CannotRestore, match=r"^what is kept of the world cannot be read: [^\n]+$"):
        content_of(TABLE + sql.format(path=tmp_path / "made"))
    assert list(tmp_path.iterdir()) == []


def test_a_short_text_makes_no_database_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(final, "MAX_PAGES", 1000)
    sql = "INSERT INTO t VALUES (zeroblob(1000000));"
    assert content_of(TABLE + 3 * sql)
    with pytest.raises(CannotRestore, match="full"):
        content_of(TABLE + 5 * sql)


def test_a_view_that_never_ends_is_read_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(final, "MAX_CALLBACKS", 3)
    assert REFUNDS.environment
    endless = "CREATE VIEW endless AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;"
    world = final_world(content_of(f"{World(REFUNDS.environment).dump()}\n{endless}"))
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        world.db.value("SELECT count(*) FROM endless")


@pytest.mark.parametrize(
    "sql",
    [
        TABLE,
        "CREATE TABLE world_clock (now, life);",
        "CREATE TABLE world_clock (now, life); INSERT INTO world_clock VALUES ('noon', 1);",
        "CREATE TABLE world_clock (now, life); INSERT INTO world_clock VALUES (1, 1); CREATE TABLE world_journal (seq);",
    ],
)
def test_a_database_that_is_no_worlds_is_refused(sql: str) -> None:
    with pytest.raises(CannotRestore, match="what is kept of the world cannot be read"):
        final_world(content_of(sql))
