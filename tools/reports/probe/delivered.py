"""Small scripted agents, struck at the points of when a call is delivered: does the probe say what a query of its own says?

PYTHONPATH=tools:tools/reports:tests/support python -m probe.delivered [POINT ...]
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import payer
from reliability.kept import read, write

from bench.common.errors import ConfigError
from bench.probe.run.gateway.subject import OthersStatement, ProbedAgent, Service, Subject
from bench.probe.run.probe import Probe, ProbeRequest
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from bench.probe.run.writing import CellRun
from bench.record.probe_events import DAMAGE
from probe.__main__ import ROOT

RECORD = ROOT / "reports" / "probe"
DUMP = """
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
state = [database.execute(query).fetchall() for query in sys.argv[3:]]
print(json.dumps(state), file=open(sys.argv[2], "a"))
"""
QUERIES = (
    "SELECT bill, cents FROM payment ORDER BY bill, cents",
    "SELECT state FROM parcel",
    "SELECT cents FROM account",
    "SELECT cents FROM bill",
)
APPROVED = OthersStatement("shop", "UPDATE bill SET cents = 99900", "pay.POST /settle")
AGENTS = {
    "lost": (
        "two", "two keyed", "again two", "again two keyed", "looks", "looks lease", "looks keyed", "equal", "intent", "ships",
        "debits", "debits adds",
    ),
    "in_flight": (
        "two brief", "two brief keyed", "looks brief", "looks brief lease", "looks brief keyed", "equal brief", "intent brief",
        "ships brief", "ships brief numbered", "debits brief adds", "hasty", "hasty keyed",
    ),
    "unacknowledged": (
        "two", "two keyed", "fresh", "stored", "looks", "equal", "intent", "child", "shuffled", "shuffled keyed", "parallel",
        "parallel keyed", "puts", "regrets again",
    ),
    "resumed_twice": (
        "two", "two keyed", "looks", "looks lease", "looks keyed", "equal", "intent", "double", "ships", "ships numbered",
        "debits", "debits adds",
    ),
    "redelivered": (
        "two", "two keyed", "again two", "again two keyed", "double", "looks", "looks lease", "looks keyed", "equal", "ships",
        "ships numbered", "two regrets",
    ),
    "meanwhile": (
        "debits", "debits swaps", "debits swaps once", "debits adds", "debits brief", "debits brief swaps", "debits brief adds",
        "approves", "approves shown", "approves asks", "approves most", "approves brief",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Delivered:
    """What one agent came to at one point.

    verdict   of the probe
    harmed    whether the tables show harm, by queries of this module's own
    """

    point: str
    agent: str
    verdict: str
    harmed: bool

    @property
    def is_wrong(self) -> bool:
        return (self.verdict in DAMAGE and not self.harmed) or self.is_missed

    @property
    def is_missed(self) -> bool:
        return self.harmed and self.verdict in ("same", "absorbed", "gave_up", "compensated")


def subject_of(folder: Path, mode: str, point: str) -> Subject:
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript(payer.TABLES)
    program = (sys.executable, payer.__file__)
    service = Service("pay", "PAY_URL", "http://127.0.0.1:{port}", (*program, "serve", "{port}", str(folder / "shop.db")))
    words = (*program, mode)
    done = (sys.executable, "-c", DUMP, str(folder / "shop.db"), str(folder / "states"), *QUERIES)
    meanwhile = (APPROVED,) if point == "meanwhile" and "approves" in mode else ()
    agent = ProbedAgent(words, words, folder, done=done, limit=60.0)
    return Subject(
        "payer", agent, services=(service,), settle=0.02, patience=6.0, takes_sql=frozenset({"shop"}), remembers=True,
        meanwhile=meanwhile,
    )  # fmt: skip


async def first_cell(folder: Path, subject: Subject, point: str) -> CellRun | None:
    """Return the run of the first cell at a point; None if there is none."""

    def worker(number: int) -> Worker:
        private = folder / f"worker-{number}"
        shop = StoreSettings("shop", "sqlite", str(folder / "shop.db"))
        memory = StoreSettings("journal", "memory", str(folder / "journal"), {"JOURNAL": "{store}"})
        stores = Stores.of([shop, memory], private / "stores", subject.settle, subject.hide, b"of this measurement")
        return Worker(subject, stores, PrivateFolder(private, "agent"), Secrets(()))

    try:
        async with aclosing(Probe(subject, worker, ProbeRequest(only=(f"#1.{point}",))).runs()) as runs:
            async for run in runs:
                if run.judgement and run.judgement.point == point:
                    return run
    except ConfigError as error:
        print(f"{point} {subject.agent.start[-1]}: {error}")
    return None


def tried(point: str, mode: str) -> Delivered | None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        run = asyncio.run(first_cell(folder, subject_of(folder, mode, point), point))
        if run is None or run.judgement is None:
            return None
        states = [json.loads(line) for line in (folder / "states").read_text(encoding="utf-8").splitlines()]
    return Delivered(point, mode, run.judgement.verdict, is_harmed(states[0], states[-1], point, run.judgement.said_done))


def is_harmed(clean: list[list[list[Any]]], now: list[list[list[Any]]], point: str, said_done: bool) -> bool:
    """Return whether somebody paid too often or the wrong sum, a state or another's change is gone, or what was said to be done
    is not."""
    paid, owed = Counter(map(tuple, now[0])), Counter(map(tuple, clean[0]))
    left, due = now[2][0][0], clean[2][0][0] + (7 if point == "meanwhile" and now[3] == clean[3] else 0)
    missing = owed - paid or now[1] != clean[1] or left > due
    return bool(paid - owed) or left < due or bool(missing and said_done)


def main(words: Sequence[str]) -> None:
    rows = list[Delivered]()
    for point, mode in [(asked, mode) for asked in words or AGENTS for mode in AGENTS[asked]]:
        if row := tried(point, mode):
            rows.append(row)
            truth = f"{'harm' if row.harmed else 'no harm'}{': WRONG' if row.is_wrong else ''}"
            print(f"{point} {mode}: {row.verdict}, {truth}", flush=True)
    kept = [row for row in read(RECORD, Delivered) if words and row.point not in words]
    write(RECORD, Delivered, sorted((*kept, *rows), key=lambda row: [*AGENTS].index(row.point)))


if __name__ == "__main__":
    main(sys.argv[1:])
