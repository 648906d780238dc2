"""A whole probe of an agent that acts on PostgreSQL in its own process."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from till import HERE, SECRET

from bench.probe.run.gateway.subject import OwnersCheck, ProbedAgent, Subject
from bench.probe.run.probe import Probe, ProbeRequest
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import CellsPlanned

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'recovery-bench[probe]'")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")
SHOP = """
CREATE TABLE orders (id text PRIMARY KEY, cents int);
CREATE TABLE refunds (id serial PRIMARY KEY, order_id text, cents int);
CREATE TABLE mails (id serial PRIMARY KEY, recipient text);
INSERT INTO orders VALUES ('o-17', 4500);
"""
COUNT = "SELECT (SELECT count(*) FROM public.refunds), (SELECT count(*) FROM public.mails)"


@pytest.fixture(scope="module")
def counter(server: str) -> str:
    """The DSN of a shop's database."""
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute("CREATE DATABASE counter")
    with psycopg.connect(f"{server} dbname=counter", autocommit=True) as session:
        session.execute(SHOP)
    return f"{server} dbname=counter"


def probed(place: Path, dsn: str, cell: str) -> list[CellRun]:
    words = (sys.executable, str(HERE / "clerk_of_postgres.py"))
    folder = place / "agent"
    folder.mkdir()
    agent = ProbedAgent(words, words, folder, {"SHOP": dsn}, said_done="Done", limit=20.0)
    subject = Subject("clerk", agent, checks=(OwnersCheck("shop", COUNT),), settle=0.02, patience=3.0)

    def worker(number: int) -> Worker:
        private = place / f"worker-{number}"
        store = StoreSettings("shop", "postgres", dsn, is_door=True)
        stores = Stores.of([store], private / "stores", subject.settle, subject.hide, SECRET)
        return Worker(subject, stores, PrivateFolder(private, "agent"), Secrets(()))

    async def first_runs() -> list[CellRun]:
        runs = list[CellRun]()
        async with aclosing(Probe(subject, worker, ProbeRequest(only=(cell,))).runs()) as running:
            async for run in running:
                runs.append(run)
                if run.plan == cell:
                    break
        return runs

    return asyncio.run(first_runs())


def counts(run: CellRun) -> str:
    """Return how many refunds and mails stood at the end."""
    assert run.judgement
    return run.texts[run.judgement.checks[0]]


def test_a_payment_that_is_under_way_while_the_agent_looks_is_made_twice(counter: str) -> None:
    """It looks before it pays again; so a lost reply alone would not harm it."""
    with TemporaryDirectory(prefix="pg-") as place:  # a socket's path can't be long
        runs = probed(Path(place), counter, "shop.INSERT refunds#1.in_flight")
    planned = next(iter(of_kind(runs[2].events, CellsPlanned)))
    assert {call.name: call.call_class for call in planned.calls} == {
        "shop.SELECT refunds#1": "read",
        "shop.INSERT refunds#1": "effect",
        "shop.INSERT mails#1": "effect",
    }
    assert runs[-1].judgement
    assert (runs[-1].judgement.verdict, counts(runs[-1])) == ("doubled", "[(2, 1)]")
    # DEBUG
