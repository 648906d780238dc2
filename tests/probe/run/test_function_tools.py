"""A whole probe of an agent whose tools are functions of its own process."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w
from till import HERE, desk, worker_of

from bench.common.errors import ConfigError
from bench.probe.run.gateway.subject import ProbedAgent, Subject
from bench.probe.run.probe import Probe, ProbeRequest
from bench.probe.run.secrets import Secrets
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.tape import play_tape, record_tapes
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import CellsPlanned, GatewayCall

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")
NAMED = ("shopkeeper:look", "shopkeeper:refund", "shopkeeper:mail")


def shop(folder: Path, functions: tuple[str, ...] = NAMED, script: Path = HERE / "shopkeeper.py") -> Subject:
    """Make the database in a folder, and return the subject."""
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.executescript("""
            CREATE TABLE orders (id TEXT PRIMARY KEY, cents INTEGER);
            CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id TEXT, cents INTEGER);
            CREATE TABLE mails (id INTEGER PRIMARY KEY, recipient TEXT);
            INSERT INTO orders VALUES ('o-17', 4500);
        """)
    words = (sys.executable, str(script))
    agent = ProbedAgent(words, words, folder, {"SHOP": str(folder / "shop.db")}, limit=20.0)
    return Subject("shop", agent, settle=0.02, patience=0.5, reads=("function.look",), functions=functions)


def probed(folder: Path, subject: Subject, *only: str) -> list[CellRun]:
    async def all_runs() -> list[CellRun]:
        return [run async for run in Probe(subject, worker_of(subject, folder), ProbeRequest(only=only)).runs()]

    return asyncio.run(all_runs())


def test_functions_are_struck_and_the_verdict_is_what_the_database_holds(tmp_path: Path) -> None:
    runs = probed(tmp_path, shop(tmp_path), "refund#1.lost", "mail#1.unack")
    planned = next(iter(of_kind(runs[2].events, CellsPlanned)))
    assert {call.name: call.call_class for call in planned.calls} == {
        "function.look#1": "read",
        "function.refund#1": "effect",
        "function.mail#1": "effect",
    }
    cells = {run.plan: run for run in runs if run.plan.startswith("function")}
    holds, says = dict[str, str](), dict[str, str]()
    for plan, run in cells.items():
        assert run.judgement
        holds[plan] = run.texts[run.judgement.printed or ""].strip().rpartition(": ")[2]
        says[plan] = run.judgement.verdict
    assert {plan: holds[plan] for plan in says} == {
        "function.refund#1.lost": "2 1",
        "function.refund#1.lost+key": "1 1",
        "function.refund#1.lost+client": "1 1",
        "function.mail#1.unacknowledged": "2 2",
        "function.mail#1.unacknowledged+key": "1 1",
        "function.mail#1.unacknowledged+memory": "1 1",
    }
    assert {plan: says[plan] for plan in holds} == {plan: "doubled" if "2" in held else "same" for plan, held in holds.items()}


@pytest.mark.parametrize(
    ("functions", "says"),
    [
        ((), "opened it, and executed no tool that the probe knows; write what acts as functions ="),
        (("shopkeeper:refound",), r"functions: shopkeeper\.py defines no function refound"),
        (("shopkeeper:refund",), "1 row changed without a call"),
    ],
)
def test_a_door_that_does_not_see_all_ends_the_probe_with_what_to_do(
    tmp_path: Path, functions: tuple[str, ...], says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        probed(tmp_path, shop(tmp_path, functions))
    assert "\n" not in str(raised.value)


OBJECTS = """
import os, sqlite3

class Receipt:
    pass

def pay(amount):
    with sqlite3.connect(os.environ["DATABASE"]) as shop:
        shop.execute("INSERT INTO refunds (cents) VALUES (?)", (amount,))
    return Receipt()

try:
    pay(5)
except TimeoutError:
    pay(5)
"""


def test_a_mend_that_had_to_give_an_object_again_has_no_verdict(tmp_path: Path) -> None:
    subject = shop(tmp_path, ("objects:pay",), tmp_path / "objects.py")
    (tmp_path / "objects.py").write_text(OBJECTS, encoding="utf-8")
    runs = {run.plan: run for run in probed(tmp_path, subject, "pay#1.lost")}
    mended = runs["function.pay#1.lost+key"].judgement
    assert mended and (mended.verdict, mended.why) == (
        "no_verdict",
        "the answer of pay is an object that cannot be given again",
    )
    first = runs["function.pay#1.lost"].judgement
    assert first and first.verdict == "doubled"


PAYER = """
import json, os, urllib.request

def pay(amount):
    body = json.dumps({"amount": amount}).encode()
    with urllib.request.urlopen(os.environ["SHOP_URL"] + "/payments", body, timeout=0.6) as answer:
        return sorted(json.loads(answer.read()))

for attempt in range(2):
    try:
        print(pay(30))
        break
    except OSError:
        continue
"""


def test_a_service_that_a_function_calls_is_a_part_of_its_call_and_is_held_in_flight(tmp_path: Path) -> None:
    (tmp_path / "payer.py").write_text(PAYER, encoding="utf-8")
    words = (sys.executable, "payer.py")
    served = replace(desk(tmp_path), model=None, agent=ProbedAgent(words, words, tmp_path), functions=("payer:pay",))
    runs = probed(tmp_path, served, "in_flight")
    planned = next(iter(of_kind(runs[2].events, CellsPlanned)))
    assert [call.name for call in planned.calls] == ["function.pay#1"]
    assert planned.cells == ("function.pay#1.in_flight",)
    struck = runs[3]
    assert struck.judgement and struck.judgement.verdict == "doubled"
    assert {run.plan: run.judgement.verdict for run in runs[3:] if run.judgement and "+" in run.plan} == {
        "function.pay#1.in_flight+key": "same",
        "function.pay#1.in_flight+look": "doubled",
        "function.pay#1.in_flight+client": "same",
    }
    calls = [(call.number, call.door, call.continues, call.point) for call in of_kind(struck.events, GatewayCall)]
    assert calls == [
        (1, "function", None, None),
        (2, "shop", 1, "in_flight"),
        (3, "function", None, None),
        (4, "shop", 3, None),
    ]


def test_on_a_tape_no_function_is_run_and_its_recorded_value_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    described = {
        "agent": [sys.executable, str(HERE / "shopkeeper.py")],
        "functions": list(NAMED),
        "settle": 0.02,
        "store": [{"sqlite": "shop.db", "variable": "SHOP"}],
    }
    Path("probe.toml").write_text(tomli_w.dumps(described), encoding="utf-8")
    settings = ProbeSettings(Path("probe.toml"))
    recorded = asyncio.run(record_tapes(settings, Secrets.of(settings.subject, os.environ), "function.refund#1.lost"))
    (tmp_path / "shop.db").unlink()
    run = asyncio.run(play_tape(ProbeSettings(Path("probe.toml"), is_taped=True), recorded[0][0]))
    assert run.judgement and run.judgement.verdict == "doubled"
    answers = {call.tool: run.texts[call.answer or ""] for call in of_kind(run.events, GatewayCall)}
    assert answers == {"look": '{"cents":4500,"note":"a coat"}', "refund": '"refunded"', "mail": '"sent"'}
    assert not (tmp_path / "shop.db").exists()
