"""Clients of PostgreSQL through the door of the database, and at the copy itself: their rows, and the time."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from time import process_time

import psycopg

from bench.probe.run.box.authority import Authority
from bench.probe.run.gateway.database import DatabaseDoor
from bench.probe.run.gateway.gate import DoorContext
from bench.probe.run.gateway.model import OPEN_GATE
from bench.probe.run.witness.postgres import PostgresStore
from bench.probe.run.witness.rows import Encoding
from functions.rows import ClientRows

HERE = Path(__file__).resolve().parent
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


@dataclass(frozen=True)
class Client:
    """A client in the version that is tried, and the packages that it needs."""

    name: str
    version: str
    packages: tuple[str, ...]


CLIENTS = (
    Client("psycopg", "3.3.9", ("psycopg[binary]==3.3.9",)),
    Client("asyncpg", "0.32.0", ("asyncpg==0.32.0",)),
    Client("SQLAlchemy", "2.1.9", ("SQLAlchemy==2.1.9", "psycopg[binary]==3.3.9")),
    Client("pg", "8.23.1", ("pg@8.23.1",)),
)


def rows_of_clients(environments: Path, server: str) -> list[ClientRows]:
    """Return what each client prints at a server of PostgreSQL through the door: in the clear, and with TLS."""
    with psycopg.connect(f"{server}/postgres", autocommit=True) as session:
        session.execute(f"DROP DATABASE IF EXISTS {DATABASE}".encode())
        session.execute(f"CREATE DATABASE {DATABASE}".encode())
    with psycopg.connect(f"{server}/{DATABASE}", autocommit=True) as session:
        session.execute(TABLES.encode())
    store = PostgresStore("shop", f"{server}/{DATABASE}", Encoding(frozenset(), b""), {}, is_door=True)
    store.make()
    try:
        return [made for client in CLIENTS for made in _rows_of(client, environments, store)]
    finally:
        store.remove()
        with psycopg.connect(f"{server}/postgres", autocommit=True) as session:
            session.execute(f"DROP DATABASE {DATABASE}".encode())


def _rows_of(client: Client, environments: Path, store: PostgresStore) -> list[ClientRows]:
    program = _program(client, environments)
    store.reset()
    direct, made = _printed(program, store.address), list[ClientRows]()
    for mode in ("disable", "require", "verify-full") if program else ():
        store.reset()
        lines, calls, seconds = asyncio.run(_through_door(store, program, mode))
        row = ClientRows(
            f"{client.name} {client.version}", mode, len(direct), direct == lines, calls, round(1000 * seconds / calls, 2)
        )
        print(row, flush=True)
        made.append(row)
    return made


def _program(client: Client, folder: Path) -> list[str]:
    """Return the words that start a client, which is installed if it is not there."""
    place = folder / client.name.lower()
    script = next((HERE / "clients").glob(f"with_{client.name.lower()}.*"))
    if script.suffix == ".js":
        if not place.exists():
            subprocess.run(["npm", "install", "--silent", "--prefix", place, *client.packages], check=True)
        shutil.copy(script, place)
        return ["node", str(place / script.name)]
    if not place.exists():
        venv.create(place, with_pip=True)
        subprocess.run([place / "bin" / "python", "-m", "pip", "install", "--quiet", *client.packages], check=True)
    return [str(place / "bin" / "python"), str(script)]


def _printed(program: list[str], dsn: str, variables: dict[str, str] | None = None) -> list[str]:
    """Return the lines that a client printed."""
    asked, environment = [*program, dsn, str(ROUNDS)], {**os.environ, **(variables or {})}
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300, env=environment)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return done.stdout.splitlines()


async def _through_door(store: PostgresStore, program: list[str], mode: str) -> tuple[list[str], int, float]:
    """Return the lines that a client printed with this `sslmode`, how many calls it made, and the seconds of the processor that
    the door took."""
    numbers, calls, authority = itertools.count(1), list[int](), Authority()

    def number() -> int:
        calls.append(next(numbers))
        return calls[-1]

    door = DatabaseDoor(
        store.server_and_names()[0], [store], DoorContext(lambda: OPEN_GATE, number, lambda: 1), authority=lambda: authority
    )
    door.counts = True
    with TemporaryDirectory() as folder, NamedTemporaryFile() as roots:
        roots.write(authority.pem)
        roots.flush()
        asked = f"?sslmode={mode}" + (f"&sslrootcert={roots.name}" if mode == "verify-full" else "")
        async with door.open(Path(folder), None):
            began = process_time()
            address = door.with_door_addresses(store.address) + asked
            variables = {"NODE_EXTRA_CA_CERTS": roots.name}
            lines = await asyncio.to_thread(_printed, program, address, variables)
            return lines, len(calls), process_time() - began
