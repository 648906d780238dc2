"""A PostgreSQL database as a store: what is copied, what differs, what a reset brings back."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.witness import postgres
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import CopyNote, notes, save_note
from bench.probe.run.witness.postgres import PostgresStore, drop_leftover, dsn_of, leftover_databases
from bench.probe.run.witness.rows import SCHEMA, Encoding
from bench.probe.run.witness.stores import orphans
from bench.record.probe_rows import SEQUENCES, Cell

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'recovery-bench[probe]'")
Change = tuple[str, str, dict[str, Cell] | None, dict[str, Cell] | None]
NUMBERS = itertools.count()
TABLES = """
CREATE TABLE account (id serial PRIMARY KEY, owner text NOT NULL, cents bigint, rate numeric);
INSERT INTO account (owner, cents, rate) VALUES ('Ada', 100, 1.5), ('Bo', 50, NULL);
CREATE TABLE log (line text, at timestamptz DEFAULT '2026-01-02 03:04:05+00');
INSERT INTO log (line) VALUES ('a'), ('a'), ('b');
"""


class Fixture:
    """A database with this content, and its store."""

    def __init__(self, server: str, script: str, hide: frozenset[str] = frozenset()) -> None:
        self.database = f"shop {next(NUMBERS)}"
        self.server = server
        self.sql(f'CREATE DATABASE "{self.database}"', f"{server} dbname=postgres")
        self.dsn = f"{server} dbname='{self.database}'"
        self.sql(script, self.dsn)
        self.store = PostgresStore("shop", self.dsn, Encoding(hide), {"DSN": "{store}", "PGDATABASE": "{database}"})
        self.store.make()

    @property
    def copy(self) -> str:
        return self.store.environment["DSN"]

    def sql(self, script: str, dsn: str = "") -> None:
        with psycopg.connect(dsn or self.copy, autocommit=True) as session:
            session.execute(script)

    def changes(self) -> list[Change]:
        differences = self.store.read(100).differences
        return [(row.table, row.key, *map(plain, (row.before, row.after))) for row in differences]  # type: ignore[misc]


def plain(row: object) -> object:
    return row and dict(row)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def made(server: str) -> Iterator[Fixture]:
    fixture = Fixture(server, TABLES)
    yield fixture
    fixture.store.remove()
    with psycopg.connect(f"{server} dbname=postgres") as session:
        names = [name for (name,) in session.execute("SELECT datname FROM pg_database").fetchall()]
    assert not [name for name in names if name.startswith("recovery-bench-probe")]


@pytest.fixture
def shop(made: Fixture) -> Iterator[Fixture]:
    yield made
    made.store.reset()


def test_rows_are_told_by_their_key_and_without_a_key_by_their_content(shop: Fixture) -> None:
    assert not shop.changes()
    shop.sql("UPDATE account SET cents = cents - 10 WHERE id = 1; DELETE FROM account WHERE id = 2")
    shop.sql("INSERT INTO log (line) VALUES ('a'), ('a'), (NULL); DELETE FROM log WHERE line = 'b'")
    account, log = shop.changes()[:2], shop.changes()[2:]
    before = {"id": 1, "owner": "Ada", "cents": 100, "rate": 1.5}
    assert account == [
        ("account", "[1]", before, before | {"cents": 90}),
        ("account", "[2]", {"id": 2, "owner": "Bo", "cents": 50, "rate": None}, None),
    ]
    at = "2026-01-02 03:04:05+00"
    rows = [(before and before["line"], after and after["line"]) for _, _, before, after in log]
    assert sorted(rows, key=str) == [("b", None), (None, "a"), (None, "a"), (None, None)]
    assert {row["at"] for _, _, before, after in log for row in (before, after) if row} == {at}


def test_a_reset_brings_the_digest_back(shop: Fixture) -> None:
    first = shop.store.read(10)
    shop.sql("INSERT INTO account (owner) VALUES ('Cy'); CREATE TABLE more (a int); TRUNCATE log")
    tables = {row.table for row in shop.store.read(10).differences}
    assert tables == {"account", "log", SCHEMA, SEQUENCES}
    shop.store.reset()
    assert shop.store.read(10) == first
    shop.sql(
        "UPDATE account SET cents = 0; UPDATE account SET cents = 100 WHERE id = 1; UPDATE account SET cents = 50 WHERE id = 2"
    )
    assert shop.store.read(10) == first


def test_a_sequence_that_moved_is_a_difference_of_its_own(shop: Fixture) -> None:
    shop.sql("SELECT nextval('account_id_seq')")
    assert shop.changes() == [
        (SEQUENCES, '["account_id_seq"]', {"value": 2, "is_called": True}, {"value": 3, "is_called": True})
    ]


def test_what_is_created_is_content(shop: Fixture) -> None:
    first = shop.store.read(100)
    shop.sql("ALTER TABLE account ADD extra text DEFAULT NULL; CREATE VIEW v AS SELECT 1 AS a; CREATE INDEX i ON log (line)")
    changes = shop.changes()
    assert [(table, key) for table, key, _, _ in changes] == [
        (SCHEMA, '["index", "public.i"]'),
        (SCHEMA, '["table", "public.account"]'),
        (SCHEMA, '["view", "public.v"]'),
    ]
    shop.sql("ALTER TABLE log ADD x int; UPDATE log SET x = 1 WHERE line = 'b'; ALTER TABLE account ALTER cents TYPE text")
    assert [table for table, *_ in shop.changes() if table != SCHEMA] == ["log", "log"]
    shop.sql("DROP TABLE log")
    assert [after for table, _, _, after in shop.changes() if table == "log"] == [None] * 3
    shop.store.reset()
    assert shop.store.read(100) == first


VALUES = {
    "'NaN'::float8": "(number) NaN",
    "'-Infinity'::float8": "(number) -Infinity",
    "12345678901234567890123456789::numeric": "(number) 12345678901234567890123456789",
    "'NaN'::numeric": "(number) NaN",
    "10.50::numeric": 10.5,
    "0.1::numeric": 0.1,
    "true": True,
    "''::text": "",
    "NULL::text": None,
    "'\\xdeadff'::bytea": "\\xdeadff",
    "'2026-01-02 03:04:05.678+02'::timestamptz": "2026-01-02 01:04:05.678+00",
    "'infinity'::timestamp": "infinity",
    "ARRAY['a', NULL, 'b c']": '{a,NULL,"b c"}',
    "'{\"a\": [1, null]}'::jsonb": '{"a": [1, null]}',
    "'[1,2)'::int4range": "[1,2)",
    "'1 day 02:00'::interval": "1 day 02:00:00",
    "'Ünï文'::text": "Ünï文",
}


def test_each_kind_of_value_is_shown_as_what_it_is(server: str) -> None:
    fixture = Fixture(server, ";".join(f"CREATE TABLE t{n} AS SELECT {value} AS v" for n, value in enumerate(VALUES)))
    fixture.sql(";".join(f"DELETE FROM t{n}" for n in range(len(VALUES))))
    shown = {row.table: row.before and row.before["v"] for row in fixture.store.read(100).differences}
    fixture.store.remove()
    assert shown == {f"t{n}": value for n, value in enumerate(VALUES.values())}


def test_partitions_other_schemas_and_strange_names_are_read(server: str) -> None:
    fixture = Fixture(
        server,
        """
        CREATE SCHEMA "we ird"; CREATE TABLE "we ird"."ta""ble" ("co l" int PRIMARY KEY, g int GENERATED ALWAYS AS (1) STORED);
        CREATE TABLE p (k int, v text, PRIMARY KEY (k)) PARTITION BY RANGE (k);
        CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
        CREATE TABLE parent (a int); CREATE TABLE child () INHERITS (parent); CREATE TABLE none ();
        """,
    )
    fixture.sql(
        'INSERT INTO "we ird"."ta""ble" VALUES (1); INSERT INTO p VALUES (1, NULL), (12, \'\'); INSERT INTO child VALUES (5)'
    )
    changes = fixture.changes()
    fixture.store.remove()
    assert changes[1:] == [
        ("p", "[12]", None, {"k": 12, "v": ""}),
        ("p", "[1]", None, {"k": 1, "v": None}),
        ('we ird.ta"ble', "[1]", None, {"co l": 1}),
    ]
    assert changes[0][0] == "child"


def test_settings_of_the_database_are_those_of_its_copy(server: str) -> None:
    fixture = Fixture(server, "CREATE SCHEMA app; CREATE TABLE app.t (a int)")
    fixture.store.remove()
    fixture.sql(f'ALTER DATABASE "{fixture.database}" SET search_path = app, public', fixture.dsn)
    fixture.store.make()
    for _ in range(2):
        fixture.sql("INSERT INTO t VALUES (1)")
        assert [change[0] for change in fixture.changes()] == ["app.t"]
        fixture.store.reset()
    fixture.store.remove()


def test_a_reset_closes_sessions_on_the_copy(shop: Fixture) -> None:
    first = shop.store.read(10)
    with psycopg.connect(shop.copy) as session:
        session.execute("DELETE FROM account")
        shop.store.reset()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    assert shop.store.read(10) == first


def test_the_owners_sessions_are_left_alone_and_named_in_one_line(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture = Fixture(server, TABLES)
    fixture.store.remove()
    with (
        psycopg.connect(fixture.dsn, application_name="cash desk", autocommit=True) as session,
        monkeypatch.context() as patched,
    ):
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        for _ in range(1000):  # the server ends a session after its client has closed it
            if session.execute(others).fetchone() == (0,):
                break
            time.sleep(0.01)
        patched.setattr(postgres, "LOCK_TIMEOUT_S", 0.0)
        message = (
            rf"^store 'shop': database '{fixture.database}' has 1 open sessions \(of cash desk\); "
            "PostgreSQL copies a database only while nobody is connected: close them and come again$"
        )
        with pytest.raises(ConfigError, match=message):
            fixture.store.make()
        assert session.execute("SELECT count(*) FROM account").fetchone() == (2,)
    fixture.store.make()
    fixture.store.remove()


def test_a_hidden_column_is_a_digest_in_rows_and_keys(server: str) -> None:
    fixture = Fixture(server, "CREATE TABLE person (mail text PRIMARY KEY, n int)", hide=frozenset({"MAIL"}))
    fixture.sql("INSERT INTO person VALUES ('a@b.example', 1)")
    reading = fixture.store.read(10)
    fixture.store.remove()
    assert "a@b" not in repr(reading)
    assert reading.differences[0].key.startswith('["(hidden) ')


def test_what_exceeds_the_bound_is_counted(shop: Fixture) -> None:
    shop.sql("INSERT INTO log SELECT n::text FROM generate_series(1, 20000) AS n")
    reading = shop.store.read(5)
    assert (len(reading.differences), reading.more) == (5, 19995)


def test_a_server_that_is_not_there_is_one_line_without_the_password() -> None:
    store = PostgresStore("shop", "postgresql://ada:canary@127.0.0.1:1/shop", Encoding(), {})
    with pytest.raises(ConfigError, match=r"^store 'shop': the database cannot be copied: ") as raised:
        store.make()
    assert "canary" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("dsn", "copy"),
    [
        ("postgresql://ada:p%40ss@h:5432/shop?sslmode=require", "postgresql://ada:p%40ss@h:5432/c?sslmode=require"),
        ("postgresql+psycopg://h/shop", "postgresql+psycopg://h/c"),
        ("user=ada dbname=shop host=h", "user=ada dbname=c host=h"),
    ],
)
def test_a_dsn_of_a_copy_differs_in_the_database_alone(dsn: str, copy: str) -> None:
    assert dsn_of(dsn, "c") == copy


def test_only_databases_of_gone_probes_are_left_ones(shop: Fixture) -> None:
    gone = "recovery-bench-probe-shop-4194305-0123456789ab"
    for name in (gone, f"{gone}-first", "recovery-bench-probe-mine"):
        shop.sql(f'CREATE DATABASE "{name}"', f"{shop.server} dbname=postgres")
    settings = [StoreSettings("shop", "postgres", shop.dsn)]
    assert leftover_databases(shop.dsn) == [(gone, gone), (f"{gone}-first", gone)]
    assert not [orphan for orphan in orphans(settings) if orphan.address]  # no probe of this user noted them
    save_note(CopyNote("postgres", place=gone))
    left = [orphan for orphan in orphans(settings) if orphan.address]
    assert [orphan.plan for orphan in left] == [f"drop the database {gone}", f"drop the database {gone}-first"]
    for orphan in left:
        orphan.clean()
    assert not leftover_databases(shop.dsn) and gone not in {note.place for note in notes()}
    shop.sql('DROP DATABASE "recovery-bench-probe-mine"', f"{shop.server} dbname=postgres")


def test_a_change_of_the_database_itself_is_seen_and_its_backup_stays_until_it_is_dropped(server: str) -> None:
    shop = Fixture(server, TABLES)
    assert not shop.store.has_changed() and not shop.store.has_changed(surely=True)
    shop.sql("INSERT INTO log (line) VALUES ('copy')")
    assert not shop.store.has_changed(surely=True)
    shop.sql("INSERT INTO log (line) VALUES ('agent')", shop.dsn)
    assert shop.store.has_changed(surely=True)
    backup = next(word for word in shop.store.keep_backup().split() if word.startswith("recovery-bench-probe-"))
    shop.store.remove()
    with psycopg.connect(f"{server} dbname='{backup}'") as session:
        assert session.execute("SELECT count(*) FROM log").fetchone() == (3,)
    assert not shop.store.has_changed(surely=True)
    drop_leftover(shop.dsn, backup)
