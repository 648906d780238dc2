"""The relay to the copies of databases. The truth is what PostgreSQL itself says, and what its databases hold afterwards."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.gateway.database import LARGEST, DatabaseRelay
from bench.probe.run.witness.store import DatabaseServer

COPIES = {"shop": "copy of shop", "Läden": "copy of Läden"}


@pytest.fixture(scope="module")
def relayed(server: str) -> Iterator[DatabaseServer]:
    """A server with the databases `shop`, its copy, and one more."""
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        for name in ("shop", "copy of shop", "more"):
            session.execute(f'CREATE DATABASE "{name}"'.encode())
        yield DatabaseServer(session.info.host, session.info.port)
        for name in ("shop", "copy of shop", "more"):
            session.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def asked(server: DatabaseServer, folder: Path, dsn: str, *statements: str) -> list[object]:
    """Return what a session by the relay answers, or raise what psycopg raises."""

    def client() -> list[object]:
        with psycopg.connect(f"host={folder} user=tester {dsn}", autocommit=True) as session:
            return [session.execute(statement.encode()).fetchone() for statement in statements]

    async def whole() -> list[object]:
        relay = DatabaseRelay(server, COPIES)
        listening = await asyncio.start_unix_server(relay.serve, folder / ".s.PGSQL.5432")
        try:
            return await asyncio.to_thread(client)
        finally:
            listening.close()

    return asyncio.run(whole())


@pytest.mark.parametrize("dsn", ["dbname=shop", "dbname='copy of shop'", "dbname=shop sslmode=prefer gssencmode=prefer"])
def test_who_asks_for_the_owners_database_or_for_the_copy_gets_the_copy(
    relayed: DatabaseServer, tmp_path: Path, dsn: str
) -> None:
    asks = "SELECT current_database(), current_setting('application_name')"
    assert asked(relayed, tmp_path, f"{dsn} application_name=desk", asks) == [("copy of shop", "desk")]


@pytest.mark.parametrize("dsn", ["dbname=more", "dbname=postgres", "", "dbname=shop replication=database"])
def test_no_other_database_of_the_server_is_reached(relayed: DatabaseServer, tmp_path: Path, dsn: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=r'FATAL:  database ".*" is not in the box of the probe; name it'):
        asked(relayed, tmp_path, dsn)


def test_a_long_answer_passes_as_it_is(relayed: DatabaseServer, tmp_path: Path) -> None:
    asks = "SELECT string_agg(md5(n::text), '' ORDER BY n) FROM generate_series(1, 60000) AS n"
    with psycopg.connect(f"host={relayed.host} user=tester dbname=shop") as session:
        assert asked(relayed, tmp_path, "dbname=shop", asks) == [session.execute(asks.encode()).fetchone()]


def test_a_statement_is_cancelled_by_the_relay(relayed: DatabaseServer, tmp_path: Path) -> None:
    async def whole() -> str:
        listening = await asyncio.start_unix_server(DatabaseRelay(relayed, COPIES).serve, tmp_path / ".s.PGSQL.5432")
        session = await psycopg.AsyncConnection.connect(f"host={tmp_path} user=tester dbname=shop")
        async with session:
            sleeping = asyncio.create_task(session.execute("SELECT pg_sleep(60)"))
            await asyncio.sleep(0.1)
            await session.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled) as error:
                await asyncio.wait_for(sleeping, 20)
        listening.close()
        return str(error.value)

    assert "canceling statement due to user request" in asyncio.run(whole())


def test_a_client_whose_server_is_gone_is_left_and_does_not_wait(tmp_path: Path) -> None:
    gone = DatabaseServer(str(tmp_path), 1)
    with pytest.raises(psycopg.OperationalError, match="closed the connection unexpectedly"):
        asked(gone, tmp_path, "dbname=shop")


class _Kept:
    """A writer that keeps what is written."""

    def __init__(self) -> None:
        self.text = b""

    def write(self, text: bytes) -> None:
        self.text += text

    async def drain(self) -> None: ...


def first_of(text: bytes) -> tuple[bytes, bytes]:
    """Return what the server would get of a session that begins so, and what the agent is answered."""

    async def first() -> tuple[bytes, bytes]:
        reader, kept = asyncio.StreamReader(), _Kept()
        reader.feed_data(text)
        reader.feed_eof()
        try:
            return await DatabaseRelay(DatabaseServer("", 0), COPIES)._first_message(reader, kept), kept.text  # type: ignore[arg-type]
        except asyncio.IncompleteReadError:
            return b"", kept.text

    return asyncio.run(first())


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@given(
    st.dictionaries(words, words, max_size=5),
    st.sampled_from(["shop", "Läden", "copy of shop", "other", ""]),
    st.integers(0, 2),
)
def test_a_first_message_keeps_all_its_values_but_the_name_of_the_database(
    values: dict[str, str], database: str, refusals: int
) -> None:
    values = {name: value for name, value in values.items() if name not in ("database", "user", "replication")} | {
        "user": "ada"
    }
    values |= {"database": database} if database else {}
    body = b"".join(f"{name}\0{value}\0".encode() for name, value in values.items()) + b"\0"
    text = struct.pack("!II", 8, 80877103) * refusals + struct.pack("!II", len(body) + 8, 3 << 16) + body
    passed, answered = first_of(text)
    copy = {**COPIES, "copy of shop": "copy of shop"}.get(database)
    assert answered.startswith(b"N" * refusals) and (answered == b"N" * refusals) == (copy is not None)
    if copy is None:
        assert passed == b""
        return
    assert struct.unpack("!II", passed[:8]) == (len(passed), 3 << 16)
    given_words = passed[8:].decode().split("\0")
    assert given_words[-2:] == ["", ""]
    assert dict(zip(given_words[:-2:2], given_words[1:-2:2], strict=True)) == {**values, "database": copy}


@given(st.binary(max_size=300))
def test_no_bytes_reach_the_server_but_a_cancellation_or_a_session_with_a_copy(text: bytes) -> None:
    passed, _ = first_of(text)
    assert not passed or passed[4:8] == struct.pack("!I", 80877102) or any(copy.encode() in passed for copy in COPIES.values())


def test_a_first_message_that_is_too_long_ends_the_session() -> None:
    assert first_of(struct.pack("!II", LARGEST + 1, 3 << 16) + bytes(LARGEST)) == (b"", b"")
