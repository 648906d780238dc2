"""The verdict says what was done: each kind of effect, delivered never, once or twice, under each witness."""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bench.common.digests import Texts
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import cells_of
from bench.probe.run.clean import clean_of
from bench.probe.run.course import AgentCourse
from bench.probe.run.gateway.gate import LiveCall
from bench.probe.run.gateway.journal import Journal
from bench.probe.run.gateway.striker import CellStrike, Striker
from bench.probe.run.gateway.subject import ProbedAgent, Subject
from bench.probe.run.meanwhile import step_before
from bench.probe.run.runner import call_of
from bench.probe.run.varying import ValueChange, ValueJudge, ValuePlace
from bench.probe.run.verdict import judge
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores
from bench.record.probe.events import CellJudged

KINDS = ("debit", "other_debit", "rate", "append", "line", "insert", "upsert", "touch", "delete", "commit")
ABSORBED = frozenset(("upsert", "touch", "delete"))
SECRET = b"the same for all"


STATEMENTS = {
    "debit": "UPDATE accounts SET balance = balance - 30 WHERE name = 'ada'",
    "other_debit": "UPDATE accounts SET balance = balance - 20 WHERE name = 'ada'",
    "rate": "UPDATE accounts SET balance = balance - {amount} WHERE name = 'bob'",
    "line": "UPDATE journal SET body = body || 'paid at {time}' || char(10)",
    "touch": "UPDATE choices SET value = 'round', at = {time} WHERE name = 'shape'",
    "append": "UPDATE notes SET body = body || '; paid'",
    "insert": "INSERT INTO payments (amount, at) VALUES (5, '{nonce}')",
    "upsert": """INSERT INTO choices (name, value) VALUES ('colour', 'red')
        ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
    "delete": "DELETE FROM carts WHERE id = 2",
    "commit": """BEGIN; INSERT INTO orders (who) VALUES ('ada');
        INSERT INTO items (order_id, what) SELECT max(id), 'pen' FROM orders;
        INSERT INTO items (order_id, what) SELECT max(id), 'ink' FROM orders;
        UPDATE stock SET pieces = pieces - 2; COMMIT""",
}
TABLES = """
    CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER);
    CREATE TABLE notes (body TEXT); CREATE TABLE carts (id INTEGER PRIMARY KEY, what TEXT);
    CREATE TABLE payments (id {made_key}, amount INTEGER, at TEXT);
    CREATE TABLE choices (name TEXT PRIMARY KEY, value TEXT, at FLOAT); CREATE TABLE journal (body TEXT);
    CREATE TABLE orders (id {made_key}, who TEXT);
    CREATE TABLE items (id {made_key}, order_id INTEGER, what TEXT);
    CREATE TABLE stock (pieces INTEGER); CREATE TABLE audit (id {made_key}, what TEXT);
    CREATE TABLE paid (bill TEXT PRIMARY KEY, cents INTEGER, tries INTEGER DEFAULT 0);
    INSERT INTO accounts VALUES ('ada', 100), ('bob', 100000); INSERT INTO notes VALUES ('begun');
    INSERT INTO journal VALUES ('');
    INSERT INTO carts VALUES (1, 'x'), (2, 'y'); INSERT INTO stock VALUES (50);
    INSERT INTO orders (who) VALUES ('bob'); INSERT INTO choices (name, value) VALUES ('colour', 'blue'), ('shape', 'square');
"""
LEDGER = """
    CREATE TABLE ledger (at INTEGER PRIMARY KEY, held TEXT);
    INSERT INTO ledger VALUES (1, '5000.00'), (2, '[]'), (3, '{"paid": [], "at": 0}'), (4, '{}'), (5, NULL),
        (6, '{"cents": 500000, "at": 0}');"""


def statement(kind: str) -> str:
    amount, now = 900 + secrets.randbelow(200), time.time()
    return STATEMENTS[kind].replace("{nonce}", uuid4().hex).replace("{amount}", f"{amount}").replace("{time}", f"{now}")


def in_sqlite(place: str, kind: str) -> None:
    with closing(sqlite3.connect(place, isolation_level=None)) as database:
        database.executescript(statement(kind))


def in_postgres(place: str, kind: str) -> None:
    import psycopg  # noqa: PLC0415  an extra

    with psycopg.connect(place, autocommit=True) as session:
        session.execute(statement(kind).replace("char(10)", "chr(10)").encode())


def in_folder(folder: str, kind: str) -> None:
    place = Path(folder)
    accounts = json.loads((place / "accounts.json").read_text(encoding="utf-8"))
    if kind.endswith("debit"):
        accounts["accounts"]["ada"]["balance"] -= 30 if kind == "debit" else 20
    elif kind == "rate":
        accounts["accounts"]["bob"]["balance"] -= 900 + secrets.randbelow(200)
    elif kind == "touch":
        accounts["shape"] = {"value": "round", "at": time.time()}
    elif kind == "line":
        with (place / "journal.txt").open("a", encoding="utf-8") as log:
            log.write(f"paid at {time.time()}\n")
    elif kind == "append":
        with (place / "log.txt").open("a", encoding="utf-8") as log:
            log.write("; paid")
    elif kind == "insert":
        (place / f"payment-{uuid4().hex}.txt").write_text("5", encoding="utf-8")
    elif kind == "upsert":
        (place / "colour.txt").write_text("red", encoding="utf-8")
    elif kind == "delete":
        (place / "cart.txt").unlink(missing_ok=True)
    else:
        accounts["orders"].append({"who": "ada", "pieces": 2})
        (place / f"commit-{uuid4().hex}").write_text("pen, ink", encoding="utf-8")
    (place / "accounts.json").write_text(json.dumps(accounts), encoding="utf-8")


def sqlite_store(folder: Path, _: pytest.FixtureRequest) -> StoreSettings:
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        database.executescript(TABLES.replace("{made_key}", "INTEGER PRIMARY KEY") + LEDGER)
    return StoreSettings("shop", "sqlite", str(folder / "shop.db"))


def postgres_store(_: Path, request: pytest.FixtureRequest) -> StoreSettings:
    server = request.getfixturevalue("server")
    import psycopg  # noqa: PLC0415  an extra

    name = f"judged_{uuid4().hex}"  # pytest may set this fixture up more than once on the session's one server
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}".encode())
    with psycopg.connect(f"{server} dbname={name}", autocommit=True) as session:
        session.execute(TABLES.replace("{made_key}", "serial PRIMARY KEY").encode())
    return StoreSettings("shop", "postgres", f"{server} dbname={name}", {"DSN": "{store}"})


def folder_store(folder: Path, _: pytest.FixtureRequest) -> StoreSettings:
    (folder / "shop").mkdir()
    accounts = {"accounts": {"ada": {"balance": 100}, "bob": {"balance": 100_000}}, "orders": []}
    accounts["shape"] = {"value": "square", "at": 0}
    for name, text in {
        "accounts.json": json.dumps(accounts),
        "log.txt": "begun",
        "journal.txt": "",
        "colour.txt": "blue",
        "cart.txt": "y",
    }.items():
        (folder / "shop" / name).write_text(text, encoding="utf-8")
    return StoreSettings("shop", "folder", str(folder / "shop"))


WITNESSES: Mapping[str, tuple[Callable[[Path, pytest.FixtureRequest], StoreSettings], Callable[[str, str], None]]] = {
    "sqlite": (sqlite_store, in_sqlite),
    "postgres": (postgres_store, in_postgres),
    "folder": (folder_store, in_folder),
}


@dataclass
class Shop:
    """A store under a witness, and what clean runs show of it."""

    runner: asyncio.Runner
    stores: Stores
    place: str
    act: Callable[[str, str], None]

    def __post_init__(self) -> None:
        self.clean = clean_of([self.course(KINDS, Masks()) for _ in range(3)])

    def course(self, kinds: Sequence[str], masks: Masks, alone: str = "") -> AgentCourse:
        return self.runner.run(course_of(self.stores, self.place, self.act, kinds, masks, alone))

    def judged(self, kinds: Sequence[str], alone: str = "", *, said_done: bool = True) -> CellJudged:
        course = replace(self.course(kinds, self.clean.masks, alone), said_done=said_done)
        return judge(self.clean, name_calls(course, self.clean.calls))


@pytest.fixture(scope="module", params=WITNESSES)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    make, act = WITNESSES[request.param]
    with TemporaryDirectory() as folder, asyncio.Runner() as runner:
        store = make(Path(folder), request)
        stores = Stores.of([store], Path(folder) / "copies", 0.0, secret=SECRET)
        runner.run(stores.make())
        try:
            yield Shop(runner, stores, stores.environment.get("DSN") or stores.replaces[store.where], act)
        finally:
            runner.run(stores.remove())


async def course_of(
    stores: Stores,
    place: str,
    act: Callable[[str, str], None],
    kinds: Sequence[str],
    masks: Masks,
    alone: str,
    strike: CellStrike | None = None,
) -> AgentCourse:
    """Do these effects in turn, each by a call. What is `alone` is done by nobody's call."""

    async def nobody_dies() -> None:
        raise AssertionError

    await stores.reset()
    journal = Journal(lambda value: value, masks.identity, stores)
    journal.begin(await stores.read())
    gate = Striker(journal, strike, 1.0, nobody_dies)
    for number, kind in enumerate(kinds, 1):
        call = LiveCall(number, "shop", "http", kind, {"nonce": uuid4().hex})
        assert await gate.arrived(call) == "pass"
        act(place, kind)
        assert await gate.answered(call, b"") == "give"
        await gate.given(call)
        if alone == kind:
            await journal.rest(until_settled=True)
            act(place, kind)
    await journal.read()
    texts = Texts()
    calls = tuple(call_of(entry, texts) for entry in journal.calls)
    identities = tuple(entry.identity for entry in journal.calls)
    struck = gate.struck.call.number if gate.struck and gate.delivered else None
    return AgentCourse(calls, identities, tuple(journal.readings), texts=texts, struck=struck)


@settings(max_examples=10, deadline=None, phases=(Phase.generate,))
@given(times=st.fixed_dictionaries({kind: st.integers(0, 2) for kind in KINDS}), late=st.booleans())
def test_the_verdict_is_what_was_done(shop: Shop, times: Mapping[str, int], late: bool) -> None:
    assert shop.clean.one_by_one
    again = [kind for kind in KINDS if times[kind] == 2]
    once = [kind for kind in KINDS if times[kind]]
    kinds = [*once, *again] if late else [kind for kind in once for _ in range(times[kind])]
    judged = shop.judged(kinds)
    expected = {(f"shop.{kind}#1", "lost", 0) for kind in KINDS if not times[kind]}
    expected |= {(f"shop.{kind}#1", "doubled", 2) for kind in again if kind not in ABSORBED}
    assert {(finding.effect, finding.kind, finding.times) for finding in judged.findings} == expected
    for finding in judged.findings:
        names = {kinds[number - 1] for number in finding.calls}
        assert names == ({finding.effect.removeprefix("shop.").removesuffix("#1")} if finding.kind == "doubled" else set())
    verdicts = {kind for _, kind, _ in expected} or {"absorbed" if again else "same"}
    assert judged.verdict == ("doubled" if "doubled" in verdicts else verdicts.pop())


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
    judged = shop.judged([*KINDS, "upsert", "delete", "delete"])
    assert (judged.verdict, judged.absorbed) == ("absorbed", 3)


def test_a_call_that_no_witness_sees_is_repeated_and_no_damage(shop: Shop) -> None:
    def act(place: str, kind: str) -> None:
        if kind != "look":
            shop.act(place, kind)

    def made(kinds: Sequence[str], masks: Masks) -> AgentCourse:
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

    def made(calls: int, masks: Masks) -> AgentCourse:
        return shop.runner.run(course_of(shop.stores, shop.place, act, ["pack"] * calls, masks, ""))

    clean = clean_of([made(1, Masks()) for _ in range(3)])
    length = 17
    verdicts = [judge(clean, name_calls(made(calls, clean.masks), clean.calls)).verdict for calls in (1, 2)]
    assert verdicts == ["same", "doubled"]


AUDITED = """
    INSERT OR IGNORE INTO paid VALUES ('bill 7', 30, 0); UPDATE paid SET tries = tries + 1;
    INSERT INTO audit (what) VALUES ('pay');
"""


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("more", "verdict"), [("", "no_verdict"), ("UPDATE stock SET pieces = pieces - 2;", "doubled")])
def test_a_counter_of_tries_and_a_row_of_an_audit_are_no_damage_by_themselves(shop: Shop, more: str, verdict: str) -> None:
    def act(place: str, _: str) -> None:
        with closing(sqlite3.connect(place, isolation_level=None)) as database:
            database.executescript(AUDITED + more)

    def made(calls: int, masks: Masks) -> AgentCourse:
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

    def made(calls: int, masks: Masks) -> AgentCourse:
        return shop.runner.run(course_of(shop.stores, shop.place, act, ["pay"] * calls, masks, ""))

    clean = clean_of([made(1, Masks()) for _ in range(3)])
    judged = judge(clean, name_calls(made(2, clean.masks), clean.calls))
    assert judged.verdict == ("doubled" if stands[-1] == 2 else "absorbed")


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("again", "verdict"), [("held + excluded.held", "doubled"), ("excluded.held", "absorbed")])
def test_a_number_of_a_row_that_was_added_adds_up_or_is_set_again(shop: Shop, again: str, verdict: str) -> None:
    stands = list[float]()

    def act(place: str, _: str) -> None:
        amount = 900 + secrets.randbelow(200)
        with closing(sqlite3.connect(place, isolation_level=None)) as database:
            database.execute(f"INSERT INTO ledger VALUES (9, {amount}) ON CONFLICT (at) DO UPDATE SET held = {again}")
            stands.append(round(float(database.execute("SELECT held FROM ledger WHERE at = 9").fetchone()[0]) / 1000))

    def made(calls: int, masks: Masks) -> AgentCourse:
        return shop.runner.run(course_of(shop.stores, shop.place, act, ["pay"] * calls, masks, ""))

    clean = clean_of([made(1, Masks()) for _ in range(3)])
    judged = judge(clean, name_calls(made(2, clean.masks), clean.calls))
    assert (judged.verdict, stands[-1]) == (verdict, 2 if verdict == "doubled" else 1)


@pytest.mark.parametrize("shop", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kind", ["debit", "other_debit"])
@pytest.mark.parametrize(
    ("how", "verdict"), [("adds", "same"), ("overwrites", "overwritten"), ("doubles", "doubled"), ("leaves out", "lost")]
)
def test_what_another_writer_added_stands_beside_what_the_agent_did(shop: Shop, kind: str, how: str, verdict: str) -> None:
    balances = list[int]()

    def act(place: str, done: str) -> None:
        with closing(sqlite3.connect(place, isolation_level=None)) as database:
            for _ in range(1 if done != kind else {"doubles": 2, "leaves out": 0}.get(how, 1)):
                database.executescript(statement(done))
            if done == kind and how == "overwrites":
                database.execute("UPDATE accounts SET balance = balance - 7 WHERE name = 'ada'")
            balances.append(database.execute("SELECT balance FROM accounts WHERE name = 'ada'").fetchone()[0])

    subject = Subject("shop", ProbedAgent((), (), Path()), takes_sql=frozenset({"shop"}))
    [(identity, call)] = [(made, call) for call, made, _ in shop.clean.reference.own_calls() if call.tool == kind]
    step = step_before(shop.clean, subject, call, identity)
    strike = CellStrike(identity, 1, "meanwhile", "", shop.clean.acting, step)
    struck = shop.runner.run(course_of(shop.stores, shop.place, act, KINDS, shop.clean.masks, "", strike))
    judged = judge(shop.clean, name_calls(struck, shop.clean.calls), f"shop.{kind}#1", "meanwhile")
    assert (judged.verdict, len(judged.findings)) == (verdict, verdict != "same")
    amount = {"debit": 30, "other_debit": 20}[kind]
    assert balances[-1] == 50 + {"adds": 7, "overwrites": 0, "doubles": 7 - amount, "leaves out": 7 + amount}[how]


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


def test_an_amount_that_is_set_and_not_added_is_no_second_effect() -> None:
    changes = [ValueChange(before, after, (1,), ("pay",), frozenset()) for before, after in ((0, 731), (0, 12), (0, 480))]
    place = ValuePlace("shop", "score", "[1]", "points")
    judge_of = ValueJudge([{place: [change]} for change in changes], {place: changes[:1]}, Counter(pay=1))
    again = ValueChange(731, 320, (2,), ("pay",), frozenset())
    assert not list(judge_of.judged({place: [changes[0], again]}, frozenset()))
    added = ValueChange(731, 1_402, (2,), ("pay",), frozenset())
    assert [times for _, times, *_ in judge_of.judged({place: [changes[0], added]}, frozenset())] == [2]
