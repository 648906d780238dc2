"""A PostgreSQL database as a store: it is copied as a template, and compared with its first state by hashes of its rows.

The server copies a database only while no session is connected to it. The probe waits for the owner's sessions, and never
closes them.
"""

from __future__ import annotations

import getpass
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from bench.common.errors import ConfigError, one_line
from bench.probe.run.witness.ignored import NOTHING, Ignored
from bench.probe.run.witness.kinds import Leftovers, StoreKind, StoreSettings
from bench.probe.run.witness.place import CopyNote, is_running, maker_process, new_name, remove_note, save_note
from bench.probe.run.witness.postgres_tables import DatabaseState, compare, state_of
from bench.probe.run.witness.rows import Encoding, sql_name
from bench.probe.run.witness.store import DatabaseServer, StoreCopy
from bench.record.probe_rows import RowDifference, StoreReading

if TYPE_CHECKING:
    from bench.probe.run.witness.postgres_tables import Session

LOCK_TIMEOUT_S = 10.0
"""How long sessions and locks of other programs are waited for."""
_TEMPLATE_SUFFIX = "-first"
"""The end of the name of the template, which is the copy's first state."""
_SETTINGS = """
SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; SET bytea_output = 'hex';
SET extra_float_digits = 1; SET search_path = pg_catalog; SET row_security = off; SET statement_timeout = 0;
SET lock_timeout = '10s'
"""
_OWNERS = f"{_SETTINGS}; RESET search_path; RESET row_security"
"""Settings of a session that executes the owner's SQL, with the owner's own search path."""
_SESSIONS_QUERY = """
SELECT count(*), string_agg(DISTINCT nullif(application_name, ''), ', ') FROM pg_stat_activity
WHERE datname = %s AND backend_type IS DISTINCT FROM 'autovacuum worker'
"""
_WRITES_QUERY = "SELECT tup_inserted, tup_updated, tup_deleted FROM pg_stat_database WHERE datname = %s"
"""Counts of the rows written in a database. The server updates them with a delay. DDL counts by its rows in the catalogue."""
_MIN_SERVER_VERSION = 130000
ADDRESS_WORDS = frozenset(("host", "hostaddr", "port", "service", "sslmode", "ssl", "sslrootcert", "sslnegotiation"))
"""Words of a DSN that give the address of a server, and the TLS of connections to it."""
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresStore(StoreCopy):
    """A PostgreSQL database that the owner named. Large objects, materialized views and foreign tables are not read.

    Args:
        name: The owner's name for it.
        dsn: Its DSN, as the owner wrote it. No message contains it.
        encoding: Encodes its values.
        variables: Variables that name the copy; `{store}` in a value is its DSN, and `{database}` its name.
        ignores: Returns whether a table, or a column as TABLE.COLUMN, is not read.
        is_door: Whether the agent's own transactions are calls, so that they pass the gateway.
    """

    def __init__(
        self,
        name: str,
        dsn: str,
        encoding: Encoding,
        variables: Mapping[str, str],
        ignores: Ignored = NOTHING,
        *,
        is_door: bool = False,
    ) -> None:
        self._ignores, self.is_door = ignores, is_door
        self.name, self._dsn, self._encoding, self._variables = name, dsn, encoding, variables
        self._copy, self._is_boxed = "", False
        self._session: Session | None = None
        self._state: DatabaseState | None = None
        self._write_counts: list[Any] = []
        self._keeps_backup = False

    @property
    def replaces(self) -> Mapping[str, str]:
        return {} if self.address == self._dsn else {self._dsn: self.address}

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that name the copy."""
        dsn, database = self.address, _database_of(self.address)
        return {name: text.replace("{store}", dsn).replace("{database}", database) for name, text in self._variables.items()}

    @property
    def address(self) -> str:
        """The DSN at which the agent finds the copy; in a box it is the owner's DSN, and a relay there leads to the copy."""
        return self._dsn if self._is_boxed else dsn_of(self._dsn, self._copy)

    @property
    def _template(self) -> str:
        """The name of the template, a database with the first state."""
        return self._copy + _TEMPLATE_SUFFIX

    def server_and_names(self) -> tuple[DatabaseServer, tuple[str, str]]:
        """Return the server, and the names of the owner's database and of the copy there. Call this after `make`. Raises
        ConfigError if the gateway cannot verify the server as libpq would."""
        assert self._session
        info, words = self._session.info, self._session.info.get_parameters()
        address = info.hostaddr if words.get("hostaddr") else ""
        server = DatabaseServer(info.host, info.port, words.get("sslmode", ""), address)
        roots = words.get("sslrootcert", "system")
        server = replace(server, roots=roots) if server.demands_tls and roots != "system" else server
        if not server.socket and (unsupported := unsupported_tls_word(words)):
            raise ConfigError(
                f"store {self.name!r}: the gateway cannot keep {unsupported} of the address or its PG variable; "
                "use sslmode=verify-full with sslrootcert or an authority of this machine, sslmode=require, or a socket"
            )
        return server, (_database_of(self._dsn), self._copy)

    def dsn_at(self, host: str, port: int) -> str:
        """Return the DSN of the copy at another host and port of this machine, without TLS."""
        return dsn_of(self._dsn, self._copy, host, port)

    def has_written(self, session: int) -> bool:
        """Return whether the transaction of a session (its process id on the server) has written: it then has an id."""
        return self._is_true("SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE pid = %s", session)

    def blocks_another_session(self, session: int) -> bool:
        """Return whether another session waits for a lock of this session."""
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND %s = ANY(pg_blocking_pids(pid))"
        return self._is_true(f"SELECT EXISTS ({waiting})", session)

    def _is_true(self, query: str, session: int) -> bool:
        """Return whether a query with the parameter `session` returns true."""
        with self._errors_in_one_line("could not be asked for its sessions"):
            assert self._session
            return self._session.execute(query.encode(), (session,)).fetchone() == (True,)

    def addresses(self) -> tuple[str, str]:
        """Return the owner's address, and the address of the copy on the server itself. Call this after `make`."""
        return self._dsn, dsn_of(self._dsn, self._copy)

    def use_box(self) -> None:
        """Put the copy at the owner's address in a box. Call this before `make`."""
        self._is_boxed = True

    def make(self) -> None:
        """Make the template and the copy, once the owner's sessions are closed. Raises ConfigError if they are not in time."""
        with self._errors_in_one_line("cannot be copied"):
            source, copy = _database_of(self._dsn), new_name(self.name)
            self._session = connected_to_server(self._dsn)
            if self.is_door and self._session.info.get_parameters().get("channel_binding") == "require":
                raise ConfigError(f"store {self.name!r}: channel_binding=require ends no way but at the server; leave it out")
            self._copy = copy
            save_note(CopyNote("postgres", place=copy))
            try:
                if self._session.info.server_version < _MIN_SERVER_VERSION:
                    raise ConfigError(f"store {self.name!r}: its server is older than PostgreSQL 13")
                self._session.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (copy,))
                self._create(self._template, source)
                self._copy_settings(source, self._template)
                self._create(copy, self._template)
                with _connect(self._dsn, self._template) as first:
                    self._state = state_of(first, self._ignores)
                self._copy_settings(self._template, copy)
            except BaseException:
                self.remove()
                raise

    def reset(self) -> None:
        """Make the copy again from the template. Sessions on the copy are closed."""
        with self._errors_in_one_line("cannot be reset"):
            assert self._session
            drop(self._session, self._copy)
            self._create(self._copy, self._template)
            self._copy_settings(self._template, self._copy)

    def read(self, most: int) -> StoreReading:
        """Return the digest of the content, and the rows that differ from the first state, at most `most`."""
        with self._errors_in_one_line("cannot be read"), _connect(self._dsn, self._copy) as current:
            current.execute(_BEGIN)
            with _connect(self._dsn, self._template) as first:
                first.execute(_BEGIN)
                return self._reading(first, current, most)

    def stamp(self) -> str:
        """Return the position in the write-ahead log of the whole server."""
        with self._errors_in_one_line("cannot be read"):
            assert self._session
            position: str = _single_value(self._session, "SELECT pg_current_wal_insert_lsn()::text")
            return position

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Return the rows of an owner's query on the copy, which it cannot change."""
        with (
            self._errors_in_one_line("did not answer the query of a check"),
            _connect(self._dsn, self._copy, _OWNERS) as session,
        ):
            session.execute("SET default_transaction_read_only = on")
            return session.execute(sql.encode(), prepare=True).fetchall()  # a prepared statement is a single one

    def change(self, sql: str) -> None:
        """Execute another writer's statement on the copy."""
        with self._errors_in_one_line("could not be changed meanwhile"), _connect(self._dsn, self._copy, _OWNERS) as session:
            session.execute(sql.encode(), prepare=True)

    def has_changed(self, *, surely: bool = False) -> bool:
        """Return whether the owner's database has other content than when it was copied, or cannot be read any more.

        `surely`: compare the content even if the server's counts of writes, which are delayed, are unchanged.
        """
        import psycopg  # noqa: PLC0415  an extra

        if self._session is None:
            return False
        try:
            rows = self._session.execute(_WRITES_QUERY, (_database_of(self._dsn),)).fetchall()
            if rows == self._write_counts and not surely:
                return False
            with _connect(self._dsn, _database_of(self._dsn)) as owner, _connect(self._dsn, self._template) as first:
                for session in (owner, first):
                    session.execute(_BEGIN)
                if state_of(owner, NOTHING).content != state_of(first, NOTHING).content:
                    return True
        except psycopg.Error:
            return True
        self._write_counts = rows
        return False

    def keep_backup(self) -> str:
        """Keep the template on the server when the copy is dropped. Return its name, and how to restore it."""
        self._keeps_backup = True
        restoring = f"pg_dump --clean --if-exists {self._template} | psql {sql_name(_database_of(self._dsn))}"
        return (
            f"the database {self._template} on its server; {restoring}, both with your server's options, restores it, "
            "and bench probe --clean drops the backup after a question"
        )

    def remove(self) -> None:
        """Drop the copy and the template. This may be called again."""
        if self._session is None:
            return
        with self._errors_in_one_line(f"has a copy that cannot be removed, {self._copy!r}"):
            try:
                for database in (self._copy, *(() if self._keeps_backup else (self._template,))):
                    drop(self._session, database)
                if not self._keeps_backup:
                    remove_note(self._copy)
            finally:
                self._session.close()
                self._session = None

    def _create(self, database: str, template: str) -> None:
        """Create a database from a template, once no session is connected to the template."""
        import psycopg.errors  # noqa: PLC0415  an extra

        assert self._session
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            count, applications = self._session.execute(_SESSIONS_QUERY, (template,)).fetchall()[0]
            with suppress(psycopg.errors.ObjectInUse):  # a session began meanwhile
                if not count:
                    self._session.execute(f"CREATE DATABASE {sql_name(database)} TEMPLATE {sql_name(template)}".encode())
                    return
            if time.monotonic() >= deadline:
                applications_note = f" (of {one_line(applications, 100)})" if applications else ""
                raise ConfigError(
                    f"store {self.name!r}: database {template!r} has {count} open sessions{applications_note}; "
                    "PostgreSQL copies a database only while nobody is connected: close them and come again"
                )
            time.sleep(0.1)

    def _copy_settings(self, source: str, database: str) -> None:
        """Give a copy the settings of the database from which it was made."""
        with _connect(self._dsn, source, settings="") as session:
            settings = _single_value(
                session,
                "SELECT array_agg(split_part(s, '=', 1)) FROM pg_db_role_setting r JOIN pg_database d ON d.oid = r.setdatabase "
                "CROSS JOIN unnest(r.setconfig) AS s WHERE d.datname = current_database() AND r.setrole = 0",
            )
            for setting in settings or ():
                session.execute(f"ALTER DATABASE {sql_name(database)} SET {setting} FROM CURRENT".encode())

    def _reading(self, first: Session, current: Session, most: int) -> StoreReading:
        """Return the reading of the copy, with at most `most` differing rows. `first` has an open transaction in the template,
        `current` in the copy."""
        assert self._state
        before, state = self._state, state_of(current, self._ignores)
        differences, count = list[RowDifference](), 0
        for difference in self._differences(first, current, before, state):
            count += 1
            if count <= most:
                differences.append(difference)
        digest = self._encoding.digest(repr(state.content).encode())
        return StoreReading(digest, tuple(sorted(differences, key=lambda row: (row.table, row.key))), max(0, count - most))

    def _differences(
        self, first: Session, current: Session, before: DatabaseState, state: DatabaseState
    ) -> Iterator[RowDifference]:
        """Yield the rows that differ between the template and the copy: first objects and sequences of the catalogue, then the
        rows of tables.

        Args:
            first: A session with an open transaction in the template.
            current: A session with an open transaction in the copy.
            before: The state of the template.
            state: The state of the copy.
        """
        for label, rows in state.catalogue.items():
            for key in sorted({*before.catalogue[label], *rows}):
                old, new = before.catalogue[label].get(key), rows.get(key)
                if old != new:
                    shown = (None if row is None else self._encoding.row(list(row), list(row.values())) for row in (old, new))
                    yield RowDifference(self.name, label, self._encoding.key([""] * len(key), key), *shown)
        for name in sorted({*before.tables, *state.tables}):
            buckets = before.buckets.get(name, {}), state.buckets.get(name, {})
            if before.tables.get(name) != state.tables.get(name) or buckets[0] != buckets[1]:
                table, difference_counts = compare(before.tables.get(name), state.tables.get(name)), Counter[str]()
                for pair in table.pairs(first, current, *buckets):
                    yield self._encoding.difference(self.name, name, table.key, table.columns, pair, difference_counts)

    def _errors_in_one_line(self, problem: str) -> AbstractContextManager[None]:
        return _errors_in_one_line(f"store {self.name!r}: the database {problem}")


@contextmanager
def _errors_in_one_line(problem: str) -> Iterator[None]:
    """Raise a ConfigError in one line for an error of the block."""
    try:
        import psycopg  # noqa: PLC0415  an extra
    except ImportError as error:
        raise ConfigError("PostgreSQL needs a package that is missing: pip install 'recovery-bench[probe]'") from error
    try:
        yield
    except psycopg.Error as error:
        raise ConfigError(f"{problem}: {one_line(str(error), 300)}") from error


def connected_to_server(dsn: str) -> Session:
    """Return a session with a database server, in the database `postgres` or `template1`."""
    import psycopg  # noqa: PLC0415  an extra

    try:
        return _connect(dsn, "postgres")
    except psycopg.OperationalError:
        return _connect(dsn, "template1")


def _connect(dsn: str, database: str, settings: str = _SETTINGS) -> Session:
    """Return a session in a database of the server at this DSN, in autocommit mode. It has executed the SQL `settings`."""
    import psycopg  # noqa: PLC0415  an extra

    session = psycopg.connect(
        _without_driver(dsn), dbname=database, autocommit=True, connect_timeout=10, application_name="recovery-bench probe"
    )
    if settings:
        session.execute(settings.encode())
    return session


def _single_value(session: Session, query: str) -> Any:
    """Return the single value of a query; None if it returns no row."""
    row = session.execute(query.encode()).fetchone()
    return row and row[0]


def drop(server: Session, database: str) -> None:
    """Drop a database that a probe made, and close the sessions in it."""
    if maker_process(database.removesuffix(_TEMPLATE_SUFFIX)) is None:
        raise RuntimeError(f"{database} was not made by a probe")
    server.execute(f"DROP DATABASE IF EXISTS {sql_name(database)} WITH (FORCE)".encode())


def leftover_databases(dsn: str) -> list[tuple[str, str]]:
    """Return (name, name of its copy) of each database that killed probes left on a server. The two differ for a template."""
    with _errors_in_one_line("the server cannot be asked for copies that were left"), connected_to_server(dsn) as server:
        names = [name for (name,) in server.execute("SELECT datname FROM pg_database ORDER BY 1").fetchall()]
        return [(name, copy) for name in names if _is_leftover(server, copy := name.removesuffix(_TEMPLATE_SUFFIX))]


def drop_leftover(dsn: str, database: str) -> None:
    """Drop a database that a killed probe left. Raises ConfigError."""
    with _errors_in_one_line(f"database {database!r} cannot be dropped"), connected_to_server(dsn) as server:
        drop(server, database)
    if database.endswith(_TEMPLATE_SUFFIX):
        remove_note(database.removesuffix(_TEMPLATE_SUFFIX))


def _is_leftover(server: Session, copy: str) -> bool:
    """Return whether a database was made by a probe that no longer runs."""
    process = maker_process(copy)
    if process is None or is_running(process):
        return False
    # a running probe, also one on another machine, holds the lock of its copy
    is_locked = server.execute("SELECT NOT pg_try_advisory_lock(hashtextextended(%s, 0))", (copy,)).fetchone()
    server.execute("SELECT pg_advisory_unlock_all()")
    return is_locked == (False,)


def dsn_of(dsn: str, database: str, host: str = "", port: int = 0) -> str:
    """Return a DSN with another database name. If a host is given, the address is that host and port, without TLS."""
    import psycopg.conninfo  # noqa: PLC0415  an extra

    address_words = {"host": host, "port": str(port)} if host else {}
    if "://" not in dsn:  # in the form `host=... dbname=...`
        words = psycopg.conninfo.conninfo_to_dict(dsn)
        for name in ADDRESS_WORDS if address_words else ():
            words.pop(name, None)
        return psycopg.conninfo.make_conninfo("", **(words | {"dbname": database} | address_words))
    parts = urlsplit(dsn)
    login, divider, netloc = parts.netloc.rpartition("@")
    query = parts.query
    if address_words:
        netloc = "" if host.startswith("/") else f"{host}:{port}"  # the folder of a socket stands among the query's words
        kept_words = [word for word in query.split("&") if word and word.partition("=")[0] not in ADDRESS_WORDS]
        query = "&".join([*kept_words, *((f"host={quote(host)}", f"port={port}") if host.startswith("/") else ())])
    return f"{parts.scheme}://{login}{divider}{netloc}/{database}{'?' if query else ''}{query}"


def unsupported_tls_word(words: Mapping[str, str]) -> str:
    """Return the TLS setting of an address that the gateway does not support; "" if there is none."""
    if words.get("sslmode") == "disable":
        return ""
    client_certificate = next((word for word in ("sslcert", "sslkey") if words.get(word)), "")
    is_rootless = words.get("sslmode") == "verify-ca" and words.get("sslrootcert", "system") == "system"
    return client_certificate or ("sslmode=verify-ca without sslrootcert" if is_rootless else "")


def hosts_of(dsn: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts of a DSN, or of the variables that libpq reads; "" or a folder for a socket of this machine, and
    `service=NAME` for a libpq service. Raises ConfigError."""
    with _errors_in_one_line("a PostgreSQL address cannot be read"):
        import psycopg.conninfo  # noqa: PLC0415  an extra

        words = psycopg.conninfo.conninfo_to_dict(_without_driver(dsn))
    if service := words.get("service") or environment.get("PGSERVICE"):
        return (f"service={service}",)
    host_lists = [words.get("hostaddr") or environment.get("PGHOSTADDR"), words.get("host") or environment.get("PGHOST")]
    return tuple(dict.fromkeys(host for hosts in host_lists if hosts for host in str(hosts).split(",")))


def _without_driver(dsn: str) -> str:
    """Return a DSN without the name of a driver in its scheme."""
    scheme, divider, rest = dsn.partition("://")
    return f"{scheme.partition('+')[0]}{divider}{rest}"


def _database_of(dsn: str) -> str:
    """Return the database name in a DSN."""
    import psycopg.conninfo  # noqa: PLC0415  an extra

    words = psycopg.conninfo.conninfo_to_dict(_without_driver(dsn))
    return str(words.get("dbname") or words.get("user") or getpass.getuser())


def _make_store(store: StoreSettings, folder: Path, encoding: Encoding) -> PostgresStore:
    del folder  # its copy is on the server
    return PostgresStore(store.name, store.where, encoding, store.variables, Ignored(store.ignore), is_door=store.is_door)


KIND = StoreKind(
    "postgres",
    _make_store,
    frozenset(("ignore", "door")),
    is_address=True,
    hosts=hosts_of,
    leftovers=Leftovers(leftover_databases, drop_leftover),
    takes_sql=True,
)
