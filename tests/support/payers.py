"""Probed agents of `payer`: a subject, and its cells one after another, beside what queries of our own read after each run."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import payer

from bench.probe.run.agent_run import AgentRun
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import cells_of
from bench.probe.run.clean import FIRST_CLEAN_RUNS, clean_of, objection
from bench.probe.run.gateway.subject import ProbedAgent, Service, Subject
from bench.probe.run.runner import Worker
from bench.probe.run.secrets import Secrets
from bench.probe.run.verdict import is_half_way, judge
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from bench.record.probe_events import CellJudged

STATE = (
    "SELECT 'paid ' || bill, round(sum(cents) / 500.0) FROM payment GROUP BY bill",
    "SELECT 'loose', count(*) FROM loose",
    "SELECT 'debits', round((5000 - cents) / 1000.0) FROM account",
    "SELECT 'bill ' || name, cents FROM bill",
)
"""What is paid, debited and set, by name. An amount that varies is around a thousand."""
State = dict[str, float]


def payer_of(folder: Path, mode: str) -> Subject:
    """Make the shop in a folder, and return the subject."""
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript(payer.TABLES)
    (folder / "log").mkdir()
    log = folder / "log" / "paid.txt"
    log.touch() if "anew" not in mode else (log.parent / "other.txt").touch()
    program = (sys.executable, payer.__file__)
    serve = (*program, "serve", "{port}", str(folder / "shop.db"), str(log))
    service = Service("pay", "PAY_URL", "http://127.0.0.1:{port}", serve)
    words = (*program, mode)
    agent = ProbedAgent(words, words, folder, limit=60.0)
    return Subject(
        "payer", agent, services=(service,), settle=0.02, patience=6.0, takes_sql=frozenset({"shop"}), remembers=True
    )


@dataclass(frozen=True)
class Shown:
    """What one run of the agent came to: its verdict, what it did, and what stood after it by queries of its own."""

    judged: CellJudged
    agent_run: AgentRun
    state: State


async def shown(
    folder: Path, subject: Subject, *points: str, witnessed: Sequence[str] = ("shop", "log")
) -> tuple[State, dict[str, Shown]]:
    """Return what stands after clean runs, and what each of these points of calls with effects comes to, once.

    Args:
        folder: Where the shop lies.
        subject: Of `payer_of`.
        points: Each with its form, as in a plan: of the first call of its tool, or `2.POINT` of the second.
        witnessed: The stores that are declared.
    """
    known = {
        "shop": StoreSettings("shop", "sqlite", str(folder / "shop.db")),
        "log": StoreSettings("log", "folder", str(folder / "log")),
    }
    memory = StoreSettings("journal", "memory", str(folder / "journal"), {"JOURNAL": "{store}"})
    settings = [*(known[name] for name in witnessed), memory]
    stores = Stores.of(settings, folder / "stores", subject.settle, subject.hide, b"of this test")
    async with Worker(subject, stores, PrivateFolder(folder / "private", "agent"), Secrets(())) as worker:
        read = partial(state_of, *(Path(stores.replaces.get(str(path), path)) for path in (folder / "shop.db", folder / "log")))
        agent_runs = [
            await worker.run(Masks(), one_by_one=number == FIRST_CLEAN_RUNS - 1) for number in range(FIRST_CLEAN_RUNS)
        ]
        checked = subject.agent.done is not None
        assert [objection(agent_run, number, checked) for number, agent_run in enumerate(agent_runs, 1)] == [
            ""
        ] * FIRST_CLEAN_RUNS
        clean, stands, struck = clean_of(agent_runs), read(), dict[str, Shown]()
        acting = {call.name for call in clean.calls.values() if call.call_class in ("effect", "unseen")}
        for cell in cells_of(clean, subject, all_forms=True):
            point = cell.plan.rpartition("#")[2].removeprefix("1.")
            if point in points and cell.call in acting and point not in struck:
                agent_run = await worker.run(clean.masks, cell.fault, half_way=partial(is_half_way, clean))
                agent_run = name_calls(agent_run, clean.calls)
                struck[point] = Shown(judge(clean, agent_run, cell.call, cell.point, cell.form), agent_run, read())
    return stands, struck


def state_of(database: Path, log: Path) -> State:
    with closing(sqlite3.connect(database)) as connection:
        state = dict(row for query in STATE for row in connection.execute(query).fetchall())
    return state | {"lines": sum(path.read_text(encoding="utf-8").count("\n") for path in log.iterdir())}
