"""A subject for tests of the probe: an agent, its server over stdio, and the SQLite database on which the server acts."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from pathlib import Path

from bench.probe.run.gateway.subject import McpConfig, McpServer, ModelSource, ProbedAgent, Service, Subject
from bench.probe.run.probe import Probe, ProbeRequest
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from bench.probe.run.writing import CellRun

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECRET = b"of this test"


def till(folder: Path, mode: str, resume: str | None = None, limit: float = 20.0) -> Subject:
    """Make the database and the agent's config in a folder, and return the subject."""
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.executescript("""
            CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER);
            CREATE TABLE payments (id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT, amount INTEGER, key TEXT,
                at TEXT DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')));
            CREATE TABLE parcels (order_id TEXT PRIMARY KEY, account TEXT);
            INSERT INTO accounts VALUES ('ada', 100), ('bob', 7);
        """)
    config = folder / ".mcp.json"
    server = [str(HERE / "till_server.py"), str(folder / "shop.db")]
    config.write_text(json.dumps({"mcpServers": {"till": {"command": sys.executable, "args": server}}}), encoding="utf-8")
    words = (sys.executable, str(HERE / "till_agent.py"), str(config))
    agent = ProbedAgent((*words, mode), (*words, mode if resume is None else resume), folder, limit=limit)
    server_of = McpServer("till", (sys.executable, *server))
    return Subject("till", agent, (McpConfig(config, (server_of,)),), settle=0.02, patience=2.0)


def desk(folder: Path) -> Subject:
    """Make a database in a folder, and return a subject with a service over it and a model that follows a script."""
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.executescript("""
            CREATE TABLE payments (id TEXT PRIMARY KEY, amount INTEGER);
            CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, payment TEXT);
        """)
    words = (sys.executable, str(HERE / "desk_agent.py"))
    program = (sys.executable, str(HERE / "desk_service.py"))
    serve = (*program, "service", "{port}", str(folder / "shop.db"))
    service = Service("shop", "SHOP_URL", "http://127.0.0.1:{port}", serve, "/payments")
    model = ModelSource(script=(*program, "model", "{port}"))
    return Subject(
        "desk", ProbedAgent(words, words, folder, limit=60.0), services=(service,), model=model, settle=0.02, patience=2.0
    )


def worker_of(subject: Subject, folder: Path, *, boxed: bool = False) -> Callable[[int], Worker]:
    """Return what makes a worker for the subject that lies in a folder."""

    def make(number: int) -> Worker:
        private = folder / f"worker-{number}"
        store = StoreSettings("shop", "sqlite", str(folder / "shop.db"), {"DATABASE": "{store}"})
        stores = Stores.of([store], private / "stores", subject.settle, subject.hide, SECRET, boxed=boxed)
        return Worker(subject, stores, PrivateFolder(private, "agent"), Secrets(()))

    return make


@dataclass(frozen=True)
class MadeProbe:
    """A probe that was run: where its subject lies, the subject, and the runs."""

    folder: Path
    subject: Subject
    runs: Sequence[CellRun]


def probed(
    folder: Path,
    subject: Subject,
    *only: str,
    workers: int = 1,
    kept: Sequence[CellRun] = (),
    most: int = 1000,
    until: str = "",
    budget: float | None = None,
) -> list[CellRun]:
    """Return the runs of a probe, at most `most`, and none after the first of the plan `until`."""

    async def all_runs() -> list[CellRun]:
        probe = Probe(subject, worker_of(subject, folder), ProbeRequest(workers, only=only, budget=budget), kept)
        runs = list[CellRun]()
        async with aclosing(probe.runs()) as running:
            async for run in running:
                runs.append(run)
                if len(runs) == most or run.plan == until:
                    break
        return runs

    return asyncio.run(all_runs())


def with_limit(subject: Subject, seconds: float) -> Subject:
    return replace(subject, agent=replace(subject.agent, limit=seconds))
