"""Clients of PostgreSQL through the door of the database, beside the same clients at the copy itself: equal rows, and the time.

    python -m functions.drivers DSN CLIENT=PROGRAM ...

DSN leads to a database of a server on which databases may be created, and CLIENT is one of `clients/`: PROGRAM starts it.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import psycopg
from reliability.kept import read, write

from bench.probe.points import AnswerFate, CallFate
from bench.probe.run.gateway.database import DatabaseDoor
from bench.probe.run.gateway.gate import LiveCall, WaitEnd
from bench.probe.run.gateway.http import Desk
from bench.probe.run.witness.postgres import PostgresStore, dsn_of
from bench.probe.run.witness.rows import Encoding
from functions.rows import ClientRows

HERE = Path(__file__).resolve().parent
RECORD = HERE.parents[1] / "reports" / "probe"
ROUNDS = 500
DATABASE = "rows_of_clients"
TABLES = """
CREATE TABLE refunds (id serial PRIMARY KEY, order_id text, cents int);
CREATE TABLE every_type AS SELECT 1::smallint AS small, 2::bigint AS big, 3.50::numeric AS exact, 0.1::float8 AS near,
    true AS yes, 'ö'::text AS words, '\\x00ff'::bytea AS bytes, '2026-11-29'::date AS day,
    '2026-11-29 12:00+00'::timestamptz AS moment,
    '{"a": [1, null]}'::jsonb AS tree, ARRAY[1, NULL, 3] AS several, NULL::text AS nothing,
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS id, '1 day'::interval AS span;
"""


class OpenGate:
    """Lets each call pass, and counts them."""

    patience = 10.0
    calls = 0

    async def arrived(self, call: LiveCall) -> CallFate:
        self.calls = call.number
        return "pass"

    async def passes(self, call: LiveCall) -> None: ...

    async def answered(self, call: LiveCall, answer: bytes) -> AnswerFate:
        del call, answer
        return "give"

    async def given(self, call: LiveCall) -> None: ...

    async def ended(self, call: LiveCall) -> None: ...

    def went(self, call: LiveCall, how: WaitEnd) -> None: ...

    def blocks(self, call: LiveCall) -> None: ...

    def noticed(self, door: str, what: str) -> None:
        print(f"{door}: {what}", file=sys.stderr)


def printed(program: list[str], dsn: str) -> list[str]:
    """Return the lines that a client printed."""
    asked = [*program, dsn, str(ROUNDS)]
    return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()


async def through_door(store: PostgresStore, program: list[str]) -> tuple[list[str], int, float]:
    """Return the lines that a client printed, how many calls it made, and the seconds of the processor that the door took."""
    gate, numbers = OpenGate(), itertools.count(1)
    door = DatabaseDoor(store.server_and_names()[0], [store], Desk(lambda: gate, lambda: next(numbers), lambda: 1))
    door.counts = True
    with TemporaryDirectory() as folder:
        async with door.open(Path(folder), None):
            began = process_time()
            lines = await asyncio.to_thread(printed, program, door.toward(store.address))
            return lines, gate.calls, process_time() - began


def main() -> int:
    dsn, *clients = sys.argv[1:]
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute(f"DROP DATABASE IF EXISTS {DATABASE}".encode())
        session.execute(f"CREATE DATABASE {DATABASE}".encode())
    with psycopg.connect(dsn_of(dsn, DATABASE), autocommit=True) as session:
        session.execute(TABLES.encode())
    store = PostgresStore("shop", dsn_of(dsn, DATABASE), Encoding(frozenset(), b""), {}, is_door=True)
    store.make()
    made = list[ClientRows]()
    try:
        for given in clients:
            client, _, program = given.partition("=")
            script = next((HERE / "clients").glob(f"with_{client.partition(' ')[0].lower()}.*"))
            store.reset()
            direct = printed([program, str(script)], store.address)
            store.reset()
            through, calls, seconds = asyncio.run(through_door(store, [program, str(script)]))
            made.append(ClientRows(client, len(direct), direct == through, calls, round(1000 * seconds / calls, 2)))
            print(made[-1], flush=True)
    finally:
        store.remove()
        with psycopg.connect(dsn, autocommit=True) as session:
            session.execute(f"DROP DATABASE {DATABASE}".encode())
    kept = [row for row in read(RECORD, ClientRows) if row.client not in {each.client for each in made}]
    write(RECORD, ClientRows, sorted([*kept, *made], key=lambda row: row.client))
    return 0 if all(row.equal for row in made) else 1


if __name__ == "__main__":
    sys.exit(main())
