"""The verdict says what was done: each kind of effect, delivered never, once or twice, under each witness."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from shop_effects import (
    AMOUNT,
    KINDS,
    OTHER_DEBIT,
    TRIED,
    Execute,
    counts_by_sql,
    do_by_sql,
    execute_postgres,
    execute_sqlite,
    in_file,
    in_file_now,
    in_folder,
    in_folder_now,
    shop_file,
    shop_folder,
    sql_of_shop,
)

from bench.common.digests import Texts
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import cells_of
from bench.probe.run.clean import CleanEffect, clean_of
from bench.probe.run.gateway.fault_injector import CellFault, FaultInjector
from bench.probe.run.gateway.gate import LiveCall
from bench.probe.run.gateway.journal import Journal
from bench.probe.run.gateway.subject import ProbedAgent, Subject
from bench.probe.run.meanwhile import others_statement_before
from bench.probe.run.recorded_form import call_of
from bench.probe.run.varying import ValueChange, ValueJudge, ValuePlace
from bench.probe.run.verdict import judge
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores
from bench.record.probe_events import CellJudged
from bench.record.probe_rows import Cell, RowDifference

SECRET = b"the same for all"
LEDGER = """
    CREATE TABLE ledger (at INTEGER PRIMARY KEY, held TEXT);
    INSERT INTO ledger VALUES (1, '5000.00'), (2, '[]'), (3, '{"paid": [], "at": 0}'), (4, '{}'), (5, NULL),
        (6, '{"cents": 500000, "at": 0}');"""


def sqlite_store(folder: Path, _: pytest.FixtureRequest) -> StoreSettings:
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript(sql_of_shop("INTEGER PRIMARY KEY") + LEDGER + DEEDS)
    return StoreSettings("shop", "sqlite", str(folder / "shop.db"))


def postgres_store(_: Path, request: pytest.FixtureRequest) -> StoreSettings:
    server = request.getfixturevalue("server")
    import psycopg  # noqa: PLC0415  an extra

    name = f"judged_{uuid4().hex}"  # pytest may set this fixture up more than once on the session's one server
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}".encode())
    with psycopg.connect(f"{server} dbname={name}", autocommit=True) as session:
        session.execute(sql_of_shop("serial PRIMARY KEY").encode())
    return StoreSettings("shop", "postgres", f"{server} dbname={name}", {"DSN": "{store}"})


def folder_store(folder: Path, _: pytest.FixtureRequest) -> StoreSettings:
    shop_folder(folder / "shop")
    return StoreSettings("shop", "folder", str(folder / "shop"))


def file_store(folder: Path, _: pytest.FixtureRequest) -> StoreSettings:
    shop_file(folder / "shop.json")
    return StoreSettings("shop", "file", str(folder / "shop.json"))


@dataclass(frozen=True)
class Witness:
    """How a shop is made, what does a thing in it, and what counts how often each thing stands."""

    make: Callable[[Path, pytest.FixtureRequest], StoreSettings]
    act: Callable[[str, str], None]
    counts: Callable[[str], Mapping[str, int]]
    execute: Execute | None = None


def witness_of_sql(make: Callable[[Path, pytest.FixtureRequest], StoreSettings], execute: Execute) -> Witness:
    return Witness(make, partial(do_by_sql, execute), partial(counts_by_sql, execute), execute)


WITNESSES = {
    "sqlite": witness_of_sql(sqlite_store, execute_sqlite),
    "postgres": witness_of_sql(postgres_store, execute_postgres),
    "folder": Witness(folder_store, in_folder, in_folder_now),
    "file": Witness(file_store, in_file, in_file_now),
}
Deeds = Sequence[str | tuple[str, ...]]
"""What is done, one after the other. The kinds of a tuple are in flight together."""


@dataclass
class Shop:
    """A store under a witness, and what clean runs show of it."""

    runner: asyncio.Runner
    stores: Stores
    place: str
    witness: Witness

    def __post_init__(self) -> None:
        self.act = self.witness.act
        self.clean = clean_of([self.agent_run(KINDS, Masks()) for _ in range(3)])

    def agent_run(self, kinds: Deeds, masks: Masks, alone: str = "") -> AgentRun:
        return self.runner.run(course_of(self.stores, self.place, self.act, kinds, masks, alone))

    def judged(self, kinds: Deeds, alone: str = "", *, said_done: bool = True) -> CellJudged:
        agent_run = replace(self.agent_run(kinds, self.clean.masks, alone), said_done=said_done)
        return judge(self.clean, name_calls(agent_run, self.clean.calls))


@pytest.fixture(scope="module", params=WITNESSES)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    witness = WITNESSES[request.param]
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = witness.make(Path(folder), request)
        stores = Stores.of([store], Path(folder) / "copies", 0.0, secret=SECRET)
        runner.run(stores.make())
        try:
            yield Shop(runner, stores, stores.environment.get("DSN") or stores.replaces[store.where], witness)
        finally:
            runner.run(stores.remove())


async def course_of(
    stores: Stores,
    place: str,
    act: Callable[[str, str], None],
    kinds: Deeds,
    masks: Masks,
    alone: str,
    strike: CellFault | None = None,
) -> AgentRun:
    """Do these things in turn, each by a call. What is `alone` is done by nobody's call."""

    async def nobody_dies() -> None:
        raise AssertionError

    await stores.reset()
    journal = Journal(lambda value: value, masks.identity, stores)
    journal.begin(await stores.read())
    gate = FaultInjector(journal, strike, 1.0, nobody_dies)
    numbers = count(1)
    for together in ((kind,) if isinstance(kind, str) else kind for kind in kinds):
        calls = [LiveCall(next(numbers), "shop", "http", kind, arguments_of(kind)) for kind in together]
        for call in calls:
            assert await gate.arrive(call) == "pass"
        for call in calls:
            act(place, call.tool)
        for call in calls:
            assert await gate.answer(call, b"") == "give"
            await gate.note_given(call)
        if alone in together:
            await journal.stop_watching(until_settled=True)
            act(place, alone)
    await journal.read()
    texts = Texts()
    made = tuple(call_of(entry, texts) for entry in journal.calls)
    identities = tuple(entry.identity for entry in journal.calls)
    struck = gate.struck_call.call.number if gate.struck_call and gate.is_delivered else None
    return AgentRun(made, identities, tuple(journal.readings), texts=texts, struck=struck)


def arguments_of(kind: str) -> JsonValue:
    return {"nonce": uuid4().hex} if kind.startswith("varying_") else {}


@st.composite
def mixtures(draw: st.DrawFn) -> list[str | tuple[str, ...]]:
    """Draw what is done: each kind never, once or twice, in any order, some of it together."""
    done = [kind for kind in KINDS for _ in range(draw(st.integers(0, 2)))]
    left, groups = draw(st.permutations(done)), list[str | tuple[str, ...]]()
    while left:
        size = draw(st.sampled_from((1, 1, 2, 3)))
        groups.append(tuple(left[:size]))
        left = left[size:]
    return groups


@settings(max_examples=max(3, settings().max_examples // 13), phases=(Phase.generate,))
@given(deeds=mixtures())
def test_the_verdict_is_what_stands_by_a_count_of_its_own(shop: Shop, deeds: Deeds) -> None:
    assert shop.clean.one_by_one
    judged = shop.judged(deeds)
    counts = shop.witness.counts(shop.place)
    expected = {(f"shop.{kind}#1", "lost", 0) for kind in KINDS if not counts[kind]}
    expected |= {(f"shop.{kind}#1", "doubled", 2) for kind in KINDS if counts[kind] == 2 and kind not in TRIED}
    assert {(finding.effect, finding.kind, finding.times) for finding in judged.findings} == expected
    done = [kind for group in deeds for kind in group]
    for finding in judged.findings:
        names = {done[number - 1] for number in finding.calls}
        assert (finding.effect.removeprefix("shop.").removesuffix("#1") in names) == (finding.kind == "doubled")
    tried, again = any(counts[kind] == 2 for kind in TRIED), len(done) > len({*done})
    otherwise = "no_verdict" if tried else "absorbed" if again else "same"
    kinds = {kind for _, kind, _ in expected}
    assert judged.verdict == ("doubled" if "doubled" in kinds else "lost" if kinds else otherwise)


def test_what_is_lost_is_damage_only_where_it_said_that_it_was_done(shop: Shop) -> None:
    assert shop.judged(KINDS[1:]).verdict == "lost"
    assert shop.judged(KINDS[1:], said_done=False).verdict == "gave_up"
    assert shop.judged((KINDS[0], *KINDS), said_done=False).verdict == "doubled"


@pytest.mark.parametrize("kind", ["debit", "append", "insert", "commit"])
def test_what_nobody_called_has_no_verdict(shop: Shop, kind: str) -> None:
    judged = shop.judged(KINDS, alone=kind)
    assert judged.verdict == "no_verdict"
    assert "without a call in flight" in judged.why


def test_calls_that_are_done_again_without_a_trace_are_absorbed(shop: Shop) -> None:
    judged = shop.judged([*KINDS, "upsert", "delete", "varying_delete"])
    assert (judged.verdict, judged.absorbed) == ("absorbed", 3)


def test_a_call_that_no_witness_sees_is_repeated_and_no_damage(shop: Shop) -> None:
    def act(place: str, kind: str) -> None:
        if kind != "look":
            shop.act(place, kind)

    def made(kinds: Sequence[str], masks: Masks) -> AgentRun:
        return shop.runner.run(course_of(shop.stores, shop.place, act, kinds, masks, ""))

    clean = clean_of([made((*KINDS, "look"), Masks()) for _ in range(3)])
    twice = replace(name_calls(made((*KINDS, "look", "look"), clean.masks), clean.calls), struck=len(KINDS) + 1)
    judged = judge(clean, twice)
    assert (judged.verdict, judged.by, judged.is_damage) == ("repeated", "journal", False)
    assert "nobody saw what it did; its tool does not say whether it only reads" in judged.why
    put = replace(twice, calls=tuple(replace(call, reads=False, idempotent=True) for call in twice.calls))
    assert "is idempotent" in judge(clean, put).why
    keyed = replace(twice, calls=tuple(replace(call, reads=False, key="k") for call in twice.calls))
    assert judge(clean, keyed).why == "nobody saw what it did; its key stayed the same"


@pytest.mark.parametrize("shop", ["folder"], indirect=True)
def test_packed_bytes_that_vary_can_vary_in_length_and_a_second_file_of_them_is_doubled(shop: Shop) -> None:
    length = 16

    def act(place: str, _: str) -> None:
        (Path(place) / f"packed-{uuid4().hex}").write_bytes(b"\xff" + secrets.token_bytes(length))

    def made(calls: int, masks: Masks) -> AgentRun:
        return shop.runner.run(course_of(shop.stores, shop.place, act, ["pack"] * calls, masks, ""))

    clean = clean_of([made(1, Masks()) for _ in range(3)])
    length = 17
    verdicts = [judge(clean, name_calls(made(calls, clean.masks), clean.calls)).verdict for calls in (1, 2)]
    assert verdicts == ["same", "doubled"]


AUDITED = """
    INSERT OR IGNORE INTO paid VALUES ('bill 7', 30, 0); UPDATE paid SET tries = tries + 1;
    INSERT INTO audit (name) VALUES ('pay');
"""


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("more", "verdict"), [("", "no_verdict"), ("UPDATE stock SET pieces = pieces - 2;", "doubled")])
def test_a_counter_of_tries_and_a_row_of_an_audit_are_no_damage_by_themselves(shop: Shop, more: str, verdict: str) -> None:
    def act(place: str, _: str) -> None:
        with closing(sqlite3.connect(place, isolation_level=None)) as database:
            database.executescript(AUDITED + more)

    def made(calls: int, masks: Masks) -> AgentRun:
        return shop.runner.run(course_of(shop.stores, shop.place, act, ["pay"] * calls, masks, ""))

    clean = clean_of([made(1, Masks()) for _ in range(3)])
    judged = judge(clean, name_calls(made(2, clean.masks), clean.calls))
    assert judged.verdict == verdict
    assert verdict == "doubled" or "the rest of what shop.pay#1 does stands once" in judged.why


WRITES = {
    "decimal": (1, "printf('%.2f', held - {amount} / 10.0)", "SELECT round((5000 - held) / 100)"),
    "list": (2, "json_insert(held, '$[#]', json_object('sku', 'A1', 'at', {time}))", "SELECT json_array_length(held)"),
    "object": (
        3,
        "json_set(json_insert(held, '$.paid[#]', {amount}), '$.at', {time})",
        "SELECT json_array_length(held, '$.paid')",
    ),
    "key": (4, "json_set(held, '$.bill', {amount})", "SELECT held LIKE '%bill%'"),
    "sum": (
        6,
        "json_set(held, '$.cents', json_extract(held, '$.cents') - {amount}, '$.at', {time})",
        "SELECT round((500000 - json_extract(held, '$.cents')) / 1000.0)",
    ),
    "text": (
        5,
        "coalesce(held, '') || 'paid {amount}' || char(10)",
        "SELECT length(held) - length(replace(held, char(10), ''))",
    ),
}


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kind", WRITES)
def test_a_text_that_holds_a_number_or_json_adds_up_as_it_would_by_itself(shop: Shop, kind: str) -> None:
    row, written, truth = WRITES[kind]
    stands = list[float]()

    def act(place: str, _: str) -> None:
        amount, now = 900 + secrets.randbelow(200), time.time()
        change = f"UPDATE ledger SET held = {written.format(amount=amount, time=now)} WHERE at = {row}"
        with closing(sqlite3.connect(place, isolation_level=None)) as database:
            database.execute(change)
            stands.append(database.execute(f"{truth} FROM ledger WHERE at = {row}").fetchone()[0])

    def made(calls: int, masks: Masks) -> AgentRun:
        return shop.runner.run(course_of(shop.stores, shop.place, act, ["pay"] * calls, masks, ""))

    clean = clean_of([made(1, Masks()) for _ in range(3)])
    judged = judge(clean, name_calls(made(2, clean.masks), clean.calls))
    assert judged.verdict == ("doubled" if stands[-1] == 2 else "absorbed")


DEEDS = """
    CREATE TABLE deeds (id INTEGER PRIMARY KEY, cents INT, euros TEXT, last INT, tries INT, log TEXT, held TEXT);
    INSERT INTO deeds VALUES (1, 500000, '5000.00', 0, 0, 'begun;end', '{"cents": 500000, "at": 0, "tries": 0, "paid": []}');
    CREATE TABLE pool (id INTEGER PRIMARY KEY, owner TEXT); INSERT INTO pool (id) VALUES (1), (2), (3), (4);
    CREATE TABLE lines (id INTEGER PRIMARY KEY, cents INT, left INT);
    CREATE TABLE bills (name TEXT PRIMARY KEY, cents INT, tries INT);"""
"""Beside the shop: what stands doubled, what is set again, and what is done once by a tool that counts its tries."""
DOUBLED_AGAIN = {
    "newest first": "UPDATE deeds SET log = 'paid {amount};' || log",
    "in the middle": "UPDATE deeds SET log = replace(log, 'end', 'paid {amount};end')",
    "number in JSON beside a counter": """UPDATE deeds
        SET held = json_set(held, '$.cents', json_extract(held, '$.cents') - {amount},
        '$.tries', json_extract(held, '$.tries') + 1, '$.at', {at})""",
    "item of a list in JSON": "UPDATE deeds SET held = json_insert(held, '$.paid[#]', json_object('cents', {amount}))",
    "number as a text": "UPDATE deeds SET euros = printf('%.2f', euros - {amount} / 10.0)",
    "line with what is left": "INSERT INTO lines (cents, left) SELECT {amount}, coalesce(sum(cents), 0) FROM lines",
    "next of a pool": "UPDATE pool SET owner = 'ada' WHERE id = (SELECT min(id) FROM pool WHERE owner IS NULL)",
    "next that is taken out": "DELETE FROM pool WHERE id = (SELECT min(id) FROM pool)",
    "seats taken": "UPDATE deeds SET tries = tries + 1",
    "sum of an upsert": """INSERT INTO bills VALUES ('a', {amount}, 0)
        ON CONFLICT (name) DO UPDATE SET cents = cents + excluded.cents""",
}
SET_AGAIN = {
    "last amount": "UPDATE deeds SET last = {amount}",
    "upsert": "INSERT INTO bills VALUES ('a', {amount}, 0) ON CONFLICT (name) DO UPDATE SET cents = excluded.cents",
    "JSON": "UPDATE deeds SET held = json_object('status', 'paid', 'amount', {amount}, 'at', {at})",
    "text": "UPDATE deeds SET log = 'last paid {amount}'",
}
TRIED_AGAIN = {
    "lease and tries": "UPDATE pool SET owner = 'ada' WHERE id = 1; UPDATE deeds SET log = 'of ada', tries = tries + 1",
    "debit and tries": "UPDATE deeds SET cents = cents - CASE tries WHEN 0 THEN {amount} ELSE 0 END, tries = tries + 1",
    "upsert and tries": "INSERT INTO bills VALUES ('a', {amount}, 1) ON CONFLICT (name) DO UPDATE SET tries = tries + 1",
    "JSON and tries": """UPDATE deeds SET held = json_set(held, '$.cents', json_extract(held, '$.cents')
        - CASE json_extract(held, '$.tries') WHEN 0 THEN {amount} ELSE 0 END, '$.tries', json_extract(held, '$.tries') + 1)""",
    "numbered audit": """INSERT OR IGNORE INTO bills VALUES ('a', {amount}, 0);
        INSERT INTO lines (cents, left) SELECT 1, count(*) FROM lines""",
}
SQL_OF = {"doubled": DOUBLED_AGAIN, "absorbed": SET_AGAIN, "no_verdict": TRIED_AGAIN}


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize(("verdict", "kind"), [(verdict, kind) for verdict, kinds in SQL_OF.items() for kind in kinds])
def test_what_adds_up_in_whatever_form_is_doubled_and_what_is_set_or_counted_is_not(
    shop: Shop, verdict: str, kind: str, varies: bool, times: int
) -> None:
    def act(place: str, _: str) -> None:
        amount, at = (900 + secrets.randbelow(200), time.time()) if varies else (1000, 1_700_000_000)
        execute_sqlite(place, SQL_OF[verdict][kind].replace("{amount}", f"{amount}").replace("{at}", f"{at}"))

    def made(calls: int, masks: Masks) -> AgentRun:
        return shop.runner.run(course_of(shop.stores, shop.place, act, ["pay"] * calls, masks, ""))

    clean = clean_of([made(1, Masks()) for _ in range(3)])
    judged = judge(clean, name_calls(made(times, clean.masks), clean.calls))
    assert judged.verdict == verdict
    assert judged.by == "witness" and (verdict != "doubled" or judged.findings[0].times == times)


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize("twice", [1, 2, 3])
def test_of_payments_that_differ_in_a_small_number_alone_the_call_that_was_made_again_is_named(shop: Shop, twice: int) -> None:
    """The number of a bill can be the key of a payment too, which the store counts up."""

    def act(place: str, kind: str) -> None:
        execute_sqlite(place, f"INSERT INTO lines (cents, left) VALUES (100, {kind.removeprefix('pay')})")

    def made(calls: Sequence[int], masks: Masks) -> AgentRun:
        kinds = [f"pay{bill}" for bill in calls]
        return shop.runner.run(course_of(shop.stores, shop.place, act, kinds, masks, ""))

    clean = clean_of([made((1, 2, 3), Masks()) for _ in range(3)])
    judged = judge(clean, name_calls(made(sorted((1, 2, 3, twice)), clean.masks), clean.calls))
    (finding,) = judged.findings
    assert (finding.kind, finding.effect, finding.times) == ("doubled", f"shop.pay{twice}#1", 2)
    assert [dict(row.after or {})["left"] for row in finding.rows] == [twice]


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("again", "verdict"), [("held + excluded.held", "doubled"), ("excluded.held", "absorbed")])
def test_a_number_of_a_row_that_was_added_adds_up_or_is_set_again(shop: Shop, again: str, verdict: str) -> None:
    stands = list[float]()

    def act(place: str, _: str) -> None:
        amount = 900 + secrets.randbelow(200)
        with closing(sqlite3.connect(place, isolation_level=None)) as database:
            database.execute(f"INSERT INTO ledger VALUES (9, {amount}) ON CONFLICT (at) DO UPDATE SET held = {again}")
            stands.append(round(float(database.execute("SELECT held FROM ledger WHERE at = 9").fetchone()[0]) / 1000))

    def made(calls: int, masks: Masks) -> AgentRun:
        return shop.runner.run(course_of(shop.stores, shop.place, act, ["pay"] * calls, masks, ""))

    clean = clean_of([made(1, Masks()) for _ in range(3)])
    judged = judge(clean, name_calls(made(2, clean.masks), clean.calls))
    assert (judged.verdict, stands[-1]) == (verdict, 2 if verdict == "doubled" else 1)


USED_UP = {
    "a sum": "INSERT INTO bills VALUES ('cart', {cents}, 0) ON CONFLICT (name) DO UPDATE SET cents = cents + excluded.cents",
    "a row": "INSERT INTO bills VALUES ('{cents} ' || hex(randomblob(4)), {cents}, 0)",
    "a value": "INSERT INTO bills VALUES ('cart', {cents}, 0) ON CONFLICT (name) DO UPDATE SET cents = excluded.cents",
}


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("what", "verdict"), [("a sum", "doubled"), ("a row", "doubled"), ("a value", "absorbed")])
def test_what_is_added_twice_and_then_used_up_by_a_later_call_is_doubled(shop: Shop, what: str, verdict: str) -> None:
    """What is ordered varies, and the rows that were added to twice are gone."""
    asked = list[int]()

    def act(place: str, kind: str) -> None:
        if kind == "add":
            asked.append(900 + secrets.randbelow(200))
            execute_sqlite(place, USED_UP[what].replace("{cents}", f"{asked[-1]}"))
        else:
            execute_sqlite(place, "INSERT INTO lines (cents, left) SELECT sum(cents), 0 FROM bills; DELETE FROM bills")

    def made(kinds: Sequence[str], masks: Masks) -> AgentRun:
        return shop.runner.run(course_of(shop.stores, shop.place, act, kinds, masks, ""))

    clean = clean_of([made(("add", "order"), Masks()) for _ in range(3)])
    assert judge(clean, name_calls(made(("add", "order"), clean.masks), clean.calls)).verdict == "same"
    judged = judge(clean, name_calls(made(("add", "add", "order"), clean.masks), clean.calls))
    assert judged.verdict == verdict
    [[ordered]] = execute_sqlite(shop.place, "SELECT cents FROM lines")
    assert ordered == (sum(asked[-2:]) if verdict == "doubled" else asked[-1])
    assert [(finding.effect, finding.times) for finding in judged.findings[:1]] == [("shop.add#1", 2)] * len(
        judged.findings[:1]
    )


@pytest.mark.parametrize("kind", ["named", "unnamed"])
def test_a_call_that_was_done_before_and_is_in_flight_beside_another_ones_change_adds_nothing(kind: str) -> None:
    def change(amount: int, *flights: tuple[int, str]) -> ValueChange:
        calls, identities = zip(*flights, strict=True)
        return ValueChange(0, -amount, calls, identities, frozenset({float(amount)} if kind == "named" else ()))

    place = ValuePlace("shop", "account", "ada", "cents")
    clean = [{place: [change(1_000 + more, (1, "a")), change(1_100 + more, (2, "b"))]} for more in (0, 30, 70)]
    judge_of = ValueJudge(clean, clean[0], Counter(a=1, b=1))
    held = {place: [change(1_050, (2, "a")), change(1_120, (1, "a"), (3, "b"))]}  # call 1 was held; call 2 made it again
    assert not list(judge_of.judgements(held, frozenset()))


@pytest.mark.parametrize(("stands", "times"), [(549, []), (2 * 549, [2])])
def test_a_change_while_equal_calls_were_in_flight_is_made_up_of_the_numbers_that_they_name(
    stands: int, times: list[int]
) -> None:
    def change(after: int, named: int, *calls: int) -> ValueChange:
        numbers = frozenset({named, named * 100, named / 100, 1, 2})
        return ValueChange(0, after, calls, ("pay",) * len(calls), numbers)

    place = ValuePlace("shop", "account", "ada", "cents")
    clean = [{place: [change(amount, amount, 1)]} for amount in (200, 231, 215)]
    judge_of = ValueJudge(clean, clean[0], Counter(pay=1))
    judged = judge_of.judgements({place: [change(stands, 549, 1, 3)]}, frozenset())
    assert [(stood, is_sure) for _, stood, _, is_sure in judged] == [(many, True) for many in times]


@pytest.mark.parametrize("shop", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("kind", ["debit", "other_debit"])
@pytest.mark.parametrize(
    ("how", "verdict"), [("adds", "same"), ("overwrites", "overwritten"), ("doubles", "doubled"), ("leaves out", "lost")]
)
def test_what_another_writer_added_stands_beside_what_the_agent_did(shop: Shop, kind: str, how: str, verdict: str) -> None:
    balances, execute = list[int](), shop.witness.execute
    assert execute

    def act(place: str, done: str) -> None:
        for _ in range(1 if done != kind else {"doubles": 2, "leaves out": 0}.get(how, 1)):
            shop.act(place, done)
        if done == kind and how == "overwrites":
            execute(place, "UPDATE accounts SET balance = balance - 7 WHERE name = 'ada'")
        balances.append(execute(place, "SELECT balance FROM accounts WHERE name = 'ada'")[0][0])

    subject = Subject("shop", ProbedAgent((), (), Path()), takes_sql=frozenset({"shop"}))
    [(identity, call)] = [(made, call) for call, made, _ in shop.clean.reference.outer_calls() if call.tool == kind]
    step = others_statement_before(shop.clean, subject, call, identity)
    strike = CellFault(identity, 1, "meanwhile", "", shop.clean.acting, step)
    struck = shop.runner.run(course_of(shop.stores, shop.place, act, KINDS, shop.clean.masks, "", strike))
    judged = judge(shop.clean, name_calls(struck, shop.clean.calls), f"shop.{kind}#1", "meanwhile")
    assert (judged.verdict, len(judged.findings)) == (verdict, verdict != "same")
    amount = {"debit": AMOUNT, "other_debit": OTHER_DEBIT}[kind]
    left = 100_000 - AMOUNT - OTHER_DEBIT
    assert balances[-1] == left + {"adds": 7, "overwrites": 0, "doubles": 7 - amount, "leaves out": 7 + amount}[how]


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
def test_a_budget_meets_the_gravest_cell_of_each_call_first(shop: Shop) -> None:
    subject = Subject("shop", ProbedAgent(("go",), ("go", "on"), Path()), takes_sql=frozenset({"shop"}))
    cells = cells_of(shop.clean, subject)
    rounds = [cells[at : at + len(KINDS)] for at in range(0, 5 * len(KINDS), len(KINDS))]
    assert [{cell.point for cell in each} for each in rounds] == [
        {"in_flight"}, {"lost"}, {"lost"}, {"unacknowledged"}, {"resumed_twice"}
    ]  # fmt: skip
    assert all({cell.call for cell in each} == {f"shop.{kind}#1" for kind in KINDS} for each in rounds)
    with_numbers = {cell.call for cell in cells if cell.point == "meanwhile"}
    assert with_numbers == {"shop.debit#1", "shop.other_debit#1"}  # the table `stock`, to which `commit` adds, has no key


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("former", "later", "others", "strikes"), [(1, 0, (), False), (5, 4, (), True), (1, 0, (2, 1), True), (3, 4, (), False)]
)
def test_another_writer_changes_a_stock_and_neither_a_flag_nor_what_only_counts_up(
    shop: Shop, former: int, later: int, others: tuple[int, ...], strikes: bool
) -> None:
    calls = shop.clean.reference.outer_calls()
    [(identity, call)] = [(made, call) for call, made, _ in calls if call.tool == "debit"]

    def changed(bill: int, was: int, now: int) -> RowDifference:
        return RowDifference("shop", "bills", f"[{bill}]", {"id": bill, "open": was}, {"id": bill, "open": now})

    effects = [CleanEffect("shop.debit#1", frozenset({identity}), (changed(7, former, later),))]
    effects += [CleanEffect("another", frozenset({"another"}), (changed(8, *others),))] if others else []
    subject = Subject("shop", ProbedAgent((), (), Path()), takes_sql=frozenset({"shop"}))
    step = others_statement_before(replace(shop.clean, effects=tuple(effects)), subject, call, identity)
    assert (step is not None) == strikes
    assert step is None or step.sql == 'UPDATE "bills" SET "open" = "open" + 7 WHERE "id" = 7'


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("version", "counting"), [(2, ', "version" = "version" + 2'), (3, None), (1, None), ("2", None)])
def test_another_writer_can_also_count_up_what_the_call_counts_up(shop: Shop, version: Cell, counting: str | None) -> None:
    [(identity, call)] = [(made, call) for call, made, _ in shop.clean.reference.outer_calls() if call.tool == "debit"]
    states = ({"id": 7, "open": 9, "version": 1}, {"id": 7, "open": 4, "version": version})
    effect = CleanEffect("shop.debit#1", frozenset({identity}), (RowDifference("shop", "bills", "[7]", *states),))
    subject = Subject("shop", ProbedAgent((), (), Path()), takes_sql=frozenset({"shop"}))
    step = others_statement_before(replace(shop.clean, effects=(effect,)), subject, call, identity)
    whole = f'UPDATE "bills" SET "open" = "open" + 7{counting} WHERE "id" = 7' if counting else ""
    assert step and step.counting == whole


def test_an_amount_that_is_set_and_not_added_is_no_second_effect() -> None:
    changes = [ValueChange(before, after, (1,), ("pay",), frozenset()) for before, after in ((0, 731), (0, 12), (0, 480))]
    place = ValuePlace("shop", "score", "[1]", "points")
    judge_of = ValueJudge([{place: [change]} for change in changes], {place: changes[:1]}, Counter(pay=1))
    again = ValueChange(731, 320, (2,), ("pay",), frozenset())
    assert not list(judge_of.judgements({place: [changes[0], again]}, frozenset()))
    added = ValueChange(731, 1_402, (2,), ("pay",), frozenset())
    assert [times for _, times, *_ in judge_of.judgements({place: [changes[0], added]}, frozenset())] == [2]
