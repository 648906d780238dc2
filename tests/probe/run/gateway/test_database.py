"""What an agent says to PostgreSQL reaches the copy as it was, and each transaction that writes is a call."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import pytest
from gates import ScriptedGate

from bench.common.errors import ConfigError
from bench.probe.points import AnswerAction, CallAction
from bench.probe.run.box.authority import Authority
from bench.probe.run.gateway import database_statements
from bench.probe.run.gateway.database import DatabaseDoor
from bench.probe.run.gateway.database_answer import ServerAnswer
from bench.probe.run.gateway.database_session import DatabaseSession
from bench.probe.run.gateway.database_statements import ExecutedStatement, SessionStatements, StatementRecord
from bench.probe.run.gateway.database_way import connect
from bench.probe.run.gateway.gate import DoorContext
from bench.probe.run.witness.postgres import PostgresStore, unsupported_tls_word
from bench.probe.run.witness.rows import Encoding
from bench.probe.run.witness.store import DatabaseServer
from bench.wire import postgres as wire
from bench.wire.postgres import CANCEL_CODE, SqlStatement, StartPacket, WireMessage, encode_start, make_query, make_row

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'recovery-bench[probe]'")

SHOP = """
CREATE TABLE orders (id text PRIMARY KEY, cents int);
CREATE TABLE refunds (id serial PRIMARY KEY, order_id text, cents int);
INSERT INTO orders VALUES ('o-17', 4500), ('o-18', 120);
CREATE FUNCTION pay(o text, c int) RETURNS int LANGUAGE sql
AS 'INSERT INTO refunds (order_id, cents) VALUES (o, c) RETURNING id';
"""
REFUND = "INSERT INTO refunds (order_id, cents) VALUES (%s, %s)"


@dataclass
class Shop:
    """A database with a copy, to which the door leads."""

    server: str
    store: PostgresStore

    def asked(self, sql: str) -> list[tuple[Any, ...]]:
        return self.store.query(sql)

    @property
    def refunds(self) -> int:
        return int(self.asked("SELECT count(*) FROM public.refunds")[0][0])


@pytest.fixture(scope="module")
def made(server: str) -> Iterator[Shop]:
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute("CREATE DATABASE till")
    with psycopg.connect(f"{server} dbname=till", autocommit=True) as session:
        session.execute(SHOP)
    store = PostgresStore("shop", f"{server} dbname=till", Encoding(frozenset(), b""), {}, is_door=True)
    store.make()
    yield Shop(server, store)
    store.remove()
    with psycopg.connect(f"{server} dbname=postgres", autocommit=True) as session:
        session.execute("DROP DATABASE till WITH (FORCE)")


@pytest.fixture
def shop(made: Shop) -> Shop:
    made.store.change("TRUNCATE public.refunds")
    return made


def ran(
    shop: Shop,
    gate: ScriptedGate,
    act: Callable[[str], Any],
    hide: frozenset[str] = frozenset(),
    *,
    authority: Authority | None = None,
    counts: bool = True,
    busy: bool = True,
) -> Any:
    """Return what a program returns that gets the address of the door."""

    async def run() -> Any:
        numbers = itertools.count(1)
        context = DoorContext(lambda: gate, lambda: next(numbers), lambda: 1)
        door = DatabaseDoor(shop.store.server_and_names()[0], [shop.store], context, hide, lambda: authority)
        door.counts = counts
        with TemporaryDirectory(prefix="pg-") as folder, socket.socket(socket.AF_UNIX) as listening:
            path = Path(folder, ".s.PGSQL.5432")
            listening.bind(str(path))
            async with door.open(path, listening if door.server.socket else None):
                try:
                    return await asyncio.wait_for(asyncio.to_thread(act, door.with_door_addresses(shop.store.address)), 20)
                finally:
                    await asyncio.wait_for(door.end(busy=busy), 10)

    return asyncio.run(run())


def tools(gate: ScriptedGate) -> list[tuple[str, bool | None]]:
    return [(call.tool, call.reads) for call in gate.calls]


def refund(address: str) -> str:
    """Pay back in a transaction. Return the error if there was one."""
    try:
        with psycopg.connect(address) as session:
            session.execute(REFUND, ("o-17", 4500))
    except psycopg.Error as error:
        return f"{type(error).__name__} {error.sqlstate}"
    return "paid"


def test_a_transaction_is_a_call_at_its_commit_and_its_reads_are_calls(shop: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> int:
        with psycopg.connect(address) as session:
            [cents] = session.execute("SELECT cents FROM orders WHERE id = %s", ("o-17",)).fetchone()
            session.execute(REFUND, ("o-17", cents))
        return int(cents)

    assert ran(shop, gate, act) == 4500
    assert tools(gate) == [("SELECT orders", True), ("INSERT refunds", None)]
    assert gate.calls[0].answer == [{"tag": "SELECT 1", "rows": [{"cents": "4500"}]}]
    assert gate.calls[1].arguments == [
        {"sql": "INSERT INTO refunds (order_id, cents) VALUES ($1, $2)", "values": ["o-17", "\\x1194"]}
    ]
    assert gate.calls[1].answer == [{"tag": "COMMIT"}]
    assert gate.course == [(what, number) for number in (1, 2) for what in ("arrived", "answered", "given")]
    assert shop.refunds == 1


def test_what_only_reads_or_is_rolled_back_has_no_call_that_writes(shop: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> None:
        with psycopg.connect(address) as session:
            session.execute("SELECT 1 FROM orders")
            session.commit()
            session.execute(REFUND, ("o-17", 1))
            session.rollback()
            with suppress(psycopg.Error):
                session.execute("INSERT INTO nowhere VALUES (1)")
            session.commit()

    ran(shop, gate, act)
    assert tools(gate) == [("SELECT orders", True)]
    assert shop.refunds == 0


def test_a_function_that_writes_makes_its_transaction_a_call(shop: Shop) -> None:
    """No word of the SQL says so: the server is asked."""
    gate = ScriptedGate()

    def act(address: str) -> None:
        with psycopg.connect(address) as session:
            session.execute("SELECT pay('o-17', 4500)")

    ran(shop, gate, act)
    assert tools(gate) == [("SELECT pay", True), ("SELECT pay", None)]
    assert shop.refunds == 1


STATEMENTS = {
    "UPDATE orders SET cents = cents WHERE id = 'o-17'": ("UPDATE orders", None),
    "UPDATE orders SET cents = 1 WHERE id = 'nobody'": ("UPDATE orders", True),
    "SELECT cents FROM orders; SELECT 2": ("SELECT orders + SELECT", True),
    "BEGIN; INSERT INTO refunds (cents) VALUES (3); COMMIT": ("INSERT refunds", None),
    "INSERT INTO refunds (cents) VALUES (';''x' = $$;$$ AND 1 = 1)::int) -- ;": None,
    "/* no /* SELECT */ */ SHOW search_path": None,
    "": None,
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statements_on_their_own_are_calls(shop: Shop, sql: str) -> None:
    gate = ScriptedGate()

    def act(address: str) -> None:
        with psycopg.connect(address, autocommit=True) as session, suppress(psycopg.errors.SyntaxError):
            session.execute(sql)

    ran(shop, gate, act)
    expected = STATEMENTS[sql]
    assert tools(gate)[:1] == ([] if expected is None and "INTO" not in sql else [expected or ("INSERT refunds", None)])


AFTER: dict[AnswerAction, str] = {
    "break": "OperationalError None",
    "error": "AdminShutdown 57P01",
    "drop": "OperationalError None",
}


@pytest.mark.parametrize(("after", "told"), AFTER.items())
def test_a_commit_whose_reply_is_lost_stands(shop: Shop, after: AnswerAction, told: str) -> None:
    gate = ScriptedGate(after={1: after})
    assert ran(shop, gate, refund) == told
    assert shop.refunds == 1
    assert ("given", 1) not in gate.course


def test_a_refused_commit_does_nothing_and_the_session_goes_on(shop: Shop) -> None:
    gate = ScriptedGate(before={1: "error"})

    def act(address: str) -> list[str]:
        told = []
        with psycopg.connect(address) as session:
            for _ in range(2):
                try:
                    session.execute(REFUND, ("o-17", 4500))
                    session.commit()
                    told.append("paid")
                except psycopg.errors.SerializationFailure:
                    told.append("refused")
        return told

    assert ran(shop, gate, act) == ["refused", "paid"]
    assert shop.refunds == 1


def test_a_refused_read_fails_its_transaction_at_the_server_too(shop: Shop) -> None:
    gate = ScriptedGate(before={1: "error"})

    def act(address: str) -> str:
        with psycopg.connect(address) as session:
            with pytest.raises(psycopg.errors.SerializationFailure):
                session.execute("SELECT cents FROM orders")
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                session.execute(REFUND, ("o-17", 4500))
            session.rollback()
            return str(session.execute("SELECT count(*) FROM refunds").fetchone())

    assert ran(shop, gate, act) == "(0,)"


def test_an_agent_that_is_killed_before_its_commit_leaves_nothing(shop: Shop) -> None:
    assert ran(shop, ScriptedGate(before={1: "drop"}), refund) == "OperationalError None"
    assert shop.refunds == 0


@pytest.mark.parametrize(
    ("after", "rows"), [("empty", []), ("too_large", None), ("garbled", "error"), ("stale", [(7,)]), ("late", [(4500,)])]
)
def test_a_damaged_read_is_one_answer_of_the_protocol(shop: Shop, after: AnswerAction, rows: Any) -> None:
    first = ScriptedGate()

    def asked(sql: str) -> Callable[[str], Any]:
        def act(address: str) -> Any:
            with psycopg.connect(address, autocommit=True) as session:
                try:
                    got = session.execute(sql).fetchall()
                except (psycopg.Error, UnicodeDecodeError):
                    got = "error"
                assert session.execute("SELECT 5").fetchone() == (5,)
                return got

        return act

    if after == "stale":
        ran(shop, first, asked("SELECT 7"))
    gate = ScriptedGate(after={1: after}, patience=0.2, instead=first.answers.get(1))
    sql = "SELECT id FROM orders WHERE id = 'o-17'" if after == "garbled" else "SELECT cents FROM orders WHERE id = 'o-17'"
    got = ran(shop, gate, asked(sql))
    assert got == rows if rows is not None else len(got) > 1000 and set(got) == {(4500,)}


def test_a_long_answer_passes_while_it_comes_and_still_counts_once(shop: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> int:
        with psycopg.connect(address, autocommit=True) as session:
            return sum(len(row[0]) for row in session.execute("SELECT repeat('x', 1000) FROM generate_series(1, 20000)"))

    assert ran(shop, gate, act) == 20_000_000
    assert gate.answers[1] == b""
    assert gate.course == [("arrived", 1), ("answered", 1), ("given", 1)]


def test_copies_in_and_out_pass(shop: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> bytes:
        with psycopg.connect(address) as session:
            with session.cursor().copy("COPY refunds (order_id, cents) FROM STDIN") as copy:
                for number in range(5000):
                    copy.write_row((f"o-{number}", number))
            session.commit()
            with session.cursor().copy("COPY (SELECT sum(cents) FROM refunds) TO STDOUT") as copy:
                out = b"".join(bytes(data) for data in copy)
            with pytest.raises(ZeroDivisionError), session.cursor().copy("COPY refunds (cents) FROM STDIN") as copy:
                copy.write_row((1,))
                _ = 1 // 0
            session.rollback()
            refused = pytest.raises(psycopg.errors.InvalidTextRepresentation)
            with refused, session.cursor().copy("COPY refunds (cents) FROM STDIN") as copy:
                copy.write("no number\n" * 100_000)
            session.rollback()
            assert session.execute("SELECT 1").fetchone() == (1,)
        return out

    assert ran(shop, gate, act) == b"12497500\n"
    assert tools(gate)[0] == ("COPY refunds", None)
    assert shop.refunds == 5000


def test_pipelines_pass_and_are_calls_at_their_commits(shop: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> list[Any]:
        with psycopg.connect(address) as session, session.pipeline() as pipeline:
            cursors = [session.execute(REFUND + " RETURNING cents", ("o-17", number)) for number in range(300)]
            pipeline.sync()
            session.commit()
            return [cursor.fetchone()[0] for cursor in cursors]

    assert ran(shop, gate, act) == list(range(300))
    assert tools(gate) == [("INSERT refunds", None)]
    assert shop.refunds == 300


def test_a_statement_is_cancelled_through_the_door(shop: Shop) -> None:
    def act(address: str) -> str:
        with psycopg.connect(address, autocommit=True) as session:
            threading.Timer(0.2, session.cancel_safe).start()
            began = monotonic()
            with pytest.raises(psycopg.errors.QueryCanceled):
                session.execute("SELECT pg_sleep(15)")
            assert monotonic() - began < 5
            return str(session.execute("SELECT 1").fetchone())

    assert ran(shop, ScriptedGate(), act) == "(1,)"


def test_a_held_commit_is_done_once_the_agent_has_left_and_looked(shop: Shop) -> None:
    gate = ScriptedGate(before={1: "hold"})
    seen = list[int]()

    def act(address: str) -> str:
        session = psycopg.connect(address)
        session.execute(REFUND, ("o-17", 4500))
        waiting = threading.Thread(target=lambda: suppress_errors(session.commit))
        waiting.start()
        sleep(0.2)
        with socket.socket(fileno=os.dup(session.fileno())) as connection:
            connection.shutdown(socket.SHUT_RDWR)
        waiting.join(5)
        with psycopg.connect(address, autocommit=True) as other:
            seen.append(other.execute("SELECT count(*) FROM refunds").fetchone()[0])
        return "looked"

    assert ran(shop, gate, act) == "looked"
    assert seen == [0]
    assert shop.refunds == 1
    assert [each for each in gate.course if each[1] == 1] == [("arrived", 1), ("disconnected", 1), ("delivered", 1)]


def suppress_errors(work: Callable[[], Any]) -> None:
    with suppress(psycopg.Error):
        work()


def test_a_held_commit_passes_once_another_session_waits_for_its_lock(shop: Shop) -> None:
    """Else both would wait for ever."""
    gate = ScriptedGate(before={1: "hold"}, patience=15.0)

    def act(address: str) -> tuple[int, float]:
        with psycopg.connect(address) as first, psycopg.connect(address, autocommit=True) as second:
            first.execute("UPDATE orders SET cents = cents + 1 WHERE id = 'o-18'")
            waiting = threading.Thread(target=first.commit)
            began = monotonic()
            waiting.start()
            sleep(0.2)
            second.execute("UPDATE orders SET cents = cents - 1 WHERE id = 'o-18'")
            waiting.join(10)
            return int(second.execute("SELECT cents FROM orders WHERE id = 'o-18'").fetchone()[0]), monotonic() - began

    cents, seconds = ran(shop, gate, act)
    assert (cents, seconds < 5) == (120, True)
    assert ("waits_longer", 1) in gate.course
    assert ("passes", 1) in gate.course
    assert "another session waits" in gate.notes[0][1]


def test_silence_ends_when_the_agent_cancels(shop: Shop) -> None:
    gate = ScriptedGate(after={1: "silence"}, patience=1.0)

    def act(address: str) -> str:
        with suppress(psycopg.OperationalError), psycopg.connect(address) as session:
            session.execute(REFUND, ("o-17", 4500))
            threading.Timer(0.2, session.cancel_safe).start()
            session.commit()
            return "told"
        return "left alone"

    assert ran(shop, gate, act) == "left alone"
    assert ("cancelled", 1) in gate.course
    assert shop.refunds == 1


def test_an_earlier_answer_is_given_again_and_nothing_is_done(shop: Shop) -> None:
    first = ScriptedGate()
    ran(shop, first, refund)
    gate = ScriptedGate(before={1: "answer"}, instead=first.answers[1])
    assert ran(shop, gate, refund) == "paid"
    assert shop.refunds == 1


@pytest.mark.parametrize("fate", ["pass", "error"])
def test_what_is_hidden_stands_under_its_name(shop: Shop, fate: CallAction) -> None:
    gate = ScriptedGate(before={1: fate})

    def act(address: str) -> None:
        with suppress(psycopg.Error), psycopg.connect(address, autocommit=True) as session:
            session.execute("INSERT INTO refunds (order_id) VALUES (%s) RETURNING 'secret-9'", ("secret-8",))

    ran(shop, gate, act, frozenset({"Order_ID"}))
    [call] = gate.calls
    assert call.arguments == [
        {
            "sql": "INSERT INTO refunds (order_id) VALUES ($1) RETURNING ''",
            "Order_ID": ["INSERT INTO refunds (order_id) VALUES ($1) RETURNING 'secret-9'", "secret-8"],
        }
    ]


@pytest.mark.parametrize(("role", "encryption"), [("newer", "scram-sha-256"), ("older", "md5")])
def test_the_server_itself_asks_for_the_password(made: Shop, role: str, encryption: str) -> None:
    with psycopg.connect(f"{made.server} dbname=till", autocommit=True) as session:
        session.execute(f"SET password_encryption = '{encryption}'")
        session.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'open'")
        port = session.info.port
    dsn = f"postgresql://{role}:open@127.0.0.1:{port}/till?sslmode=prefer&application_name=a%20b"
    store = PostgresStore("shop", dsn, Encoding(frozenset(), b""), {}, is_door=True)
    store.make()
    try:
        gate = ScriptedGate()

        def act(address: str) -> list[str]:
            assert address.startswith(f"postgresql://{role}:open@127.0.0.1:")
            with psycopg.connect(address) as session:
                row = session.execute("SELECT current_user, current_setting('application_name')").fetchone()
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(address.replace(":open@", ":shut@"))
            with pytest.raises(psycopg.OperationalError, match="SSL"):
                psycopg.connect(address, sslmode="require")
            return list(row)

        assert ran(Shop(made.server, store), gate, act) == [role, "a b"]
        assert [("TLS" in what) for _, what in gate.notes] == [True]
    finally:
        store.remove()


@contextmanager
def by_tcp(made: Shop, role: str, words: str = "") -> Iterator[Shop]:
    """A door at the server's port, where each session logs in by SCRAM."""
    with psycopg.connect(f"{made.server} dbname=till", autocommit=True) as session:
        session.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'open'")
        port = session.info.port
    dsn = f"postgresql://{role}:open@127.0.0.1:{port}/till{words}"
    store = PostgresStore("shop", dsn, Encoding(frozenset(), b""), {}, is_door=True)
    store.make()
    try:
        yield Shop(made.server, store)
    finally:
        store.remove()


@pytest.mark.parametrize("mode", ["require", "verify-full"])
def test_who_demands_tls_gets_it_by_the_authority_and_its_transaction_is_a_call(made: Shop, mode: str, tmp_path: Path) -> None:
    gate, authority, roots = ScriptedGate(), Authority(), tmp_path / "roots.pem"
    roots.write_bytes(authority.pem)

    def act(address: str) -> bool:
        with psycopg.connect(address, sslmode=mode, sslrootcert=roots) as session:
            session.execute(REFUND, ("o-17", 4500))
            return bool(session.pgconn.ssl_in_use)

    with by_tcp(made, f"role_{mode[:3]}") as shop:
        assert ran(shop, gate, act, authority=authority) is True
        assert (tools(gate), gate.notes, shop.refunds) == ([("INSERT refunds", None)], [], 1)


def test_a_client_that_trusts_another_authority_is_told_which_to_trust(made: Shop, tmp_path: Path) -> None:
    gate, roots = ScriptedGate(), tmp_path / "roots.pem"
    roots.write_bytes(Authority().pem)

    def act(address: str) -> None:
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            psycopg.connect(address, sslmode="verify-full", sslrootcert=roots)

    with by_tcp(made, "distrusting") as shop:
        ran(shop, gate, act, authority=Authority())
    assert ["does not trust the authority of the probe" in what for _, what in gate.notes] == [True]


def test_a_login_that_is_bound_to_tls_is_refused_by_name_where_tls_ends_twice(made: Shop) -> None:
    """The server would refuse it too: it offers to bind the login, and the client was not told so."""
    gate = ScriptedGate()

    def act(address: str) -> str:
        words = {"sslmode": "require", "connect_timeout": 10}
        with pytest.raises(psycopg.OperationalError, match="channel_binding=disable"):
            psycopg.connect(address, **words)
        with pytest.raises(psycopg.OperationalError, match="channel binding"):
            psycopg.connect(address, channel_binding="require", **words)
        with psycopg.connect(address, channel_binding="disable", **words) as session:
            return str(session.execute("SELECT current_user").fetchone()[0])

    with by_tcp(made, "bound", "?sslmode=require") as shop:
        assert shop.store.server_and_names()[0].demands_tls
        assert ran(shop, gate, act, authority=Authority()) == "bound"
    assert ["channel_binding=require" in what for _, what in gate.notes] == [False, True]


def test_the_way_to_the_server_takes_the_roots_of_the_address(made: Shop, tmp_path: Path) -> None:
    with psycopg.connect(f"{made.server} dbname=till") as session:
        folder = session.execute("SHOW data_directory").fetchone()[0]
    roots, others = Path(folder, "server.crt"), tmp_path / "others.pem"
    others.write_bytes(Authority().pem)
    with by_tcp(made, "rooted_way", f"?sslmode=verify-full&sslrootcert={roots}") as shop:
        server = shop.store.server_and_names()[0]

    async def peer(server: DatabaseServer) -> str:
        _, writer = await connect(server)
        cipher = str(writer.get_extra_info("cipher")[1])
        writer.close()
        await writer.wait_closed()
        return cipher

    assert asyncio.run(peer(server)).startswith("TLS")
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(peer(replace(server, roots=str(others))))


def test_tls_without_a_question_before_it_is_refused_by_name(made: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> bytes:
        with socket.create_connection(("127.0.0.1", psycopg.conninfo.conninfo_to_dict(address)["port"])) as client:
            client.sendall(b"\x16\3\1\0\x05hello")
            return client.recv(10)

    with by_tcp(made, "direct") as shop:
        assert ran(shop, gate, act, authority=Authority()) == b""
    assert ["sslnegotiation=postgres" in what for _, what in gate.notes] == [True]


def parsed(name: str, sql: str) -> WireMessage:
    return wire.make_message(b"P", f"{name}\0{sql}\0".encode() + b"\0\0")


def executed(name: str) -> list[WireMessage]:
    return [wire.make_message(b"B", f"\0{name}\0".encode() + b"\0\0\0\0\0\0"), wire.make_message(b"E", b"\0\0\0\0\0")]


@pytest.mark.parametrize("padding", ["", "x" * 2**11])
def test_the_oldest_of_many_prepared_statements_counts_as_one_that_can_write(padding: str) -> None:
    statements = SessionStatements()
    for number in range(1100):
        statements.note(parsed(f"s{number}", f"SELECT {number} -- {padding}"))
    assert statements._size <= 2**20
    told = []
    for name in ("s0", "s1099"):
        for message in executed(name):
            statements.note(message)
        told.append(statements.take_executed().writes)
    assert told == [True, False]


def test_of_a_long_transaction_a_bound_is_kept_and_a_digest_of_the_rest() -> None:
    """What came first, whether one of all writes, and whether the rest is the same."""

    def record(last: str, size: int = 10) -> StatementRecord:
        record = StatementRecord()
        for _ in range(40):
            part = StatementRecord()
            for number in range(50):
                part.add(ExecutedStatement(SqlStatement("x" * size, "INSERT INTO refunds"), (str(number).encode(),)))
            record.extend(part)
        record.add(ExecutedStatement(SqlStatement(last, "DELETE FROM refunds")))
        return record

    (told, more), (_, others) = record("a").summary(), record("b").summary()
    assert (len(told), [{**each, "sha256": ""} for each in more if isinstance(each, dict)]) == (
        1000,
        [{"further": 1001, "sha256": ""}],
    )
    assert record("a").summary()[1] == more != others
    assert len(record("a", 2**12).statements) <= 2**20 // 2**12
    assert record("a").writes


def test_no_other_database_of_the_server_is_reached(shop: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> str:
        with pytest.raises(psycopg.OperationalError, match="'postgres' is not in the box of the probe; name it"):
            psycopg.connect(address, dbname="postgres")
        with pytest.raises(psycopg.OperationalError, match="replication is not passed on"):
            psycopg.connect(f"{address} replication=database")
        with psycopg.connect(address, dbname="till") as session:
            return str(session.execute("SELECT current_database()").fetchone()[0])

    assert ran(shop, gate, act) == shop.store.server_and_names()[1][1]
    assert len(gate.notes) == 2


def test_who_comes_while_no_agent_runs_makes_no_call(shop: Shop) -> None:
    """Such as a check of the owner's, which finds the copy at the same place."""
    gate = ScriptedGate()
    assert ran(shop, gate, refund, counts=False) == "paid"
    assert (gate.calls, shop.refunds) == ([], 1)


def test_an_agent_whose_server_is_gone_is_told_and_does_not_wait(shop: Shop, tmp_path: Path) -> None:
    class Gone(PostgresStore):
        def server_and_names(self) -> tuple[DatabaseServer, tuple[str, str]]:
            return DatabaseServer(str(tmp_path), 1), ("till", "copy")

    gone = Gone("shop", f"{shop.server} dbname=till", Encoding(frozenset(), b""), {}, is_door=True)
    assert ran(Shop(shop.server, gone), ScriptedGate(), refund) == "OperationalError None"


@pytest.mark.parametrize("prepare", [False, True])
def test_what_acts_on_the_whole_server_is_refused_and_noticed(shop: Shop, tmp_path: Path, prepare: bool) -> None:
    gate, made = ScriptedGate(), tmp_path / "made"

    def act(address: str) -> list[str]:
        told = []
        with psycopg.connect(address, autocommit=True) as session:
            for sql in (f"COPY refunds TO PROGRAM 'touch {made}'", "CREATE ROLE mallory", "DROP DATABASE till"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="act on the whole server") as refused:
                    session.execute(sql, prepare=prepare)
                told.append(str(refused.value.sqlstate))
            with pytest.raises(psycopg.errors.InFailedSqlTransaction), session.transaction():
                with suppress(psycopg.Error):
                    session.execute("ALTER SYSTEM SET fsync = off", prepare=prepare)
                session.execute(REFUND, ("o-17", 1))
            session.execute(REFUND, ("o-17", 2))
        return told

    assert ran(shop, gate, act) == ["42501"] * 3
    assert len([what for _, what in gate.notes if "a statement of the agent was refused" in what]) == 4
    assert (shop.refunds, made.exists()) == (1, False)
    assert shop.asked("SELECT count(*) FROM pg_roles WHERE rolname = 'mallory'") == [(0,)]
    assert shop.asked("SELECT count(*) FROM pg_database WHERE datname = 'till'") == [(1,)]


def test_a_prepared_statement_that_is_known_no_more_is_a_call_that_can_write(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_statements, "MAX_STATEMENTS", 2)
    gate = ScriptedGate()

    def act(address: str) -> None:
        with psycopg.connect(address, autocommit=True) as session:
            for cents in (1, 2, 3, 4, 4, 1):
                session.execute(f"INSERT INTO refunds (order_id, cents) VALUES ('o-17', {cents})", prepare=True)

    ran(shop, gate, act)
    assert tools(gate) == [("INSERT refunds", None)] * 5 + [("CALL", None)]
    assert (shop.refunds, gate.notes) == (6, [])


def test_a_statement_that_comes_before_the_server_is_ready_is_looked_at_too(shop: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> bytes:
        words = psycopg.conninfo.conninfo_to_dict(address)
        start = {"user": words["user"], "database": words["dbname"]}
        with socket.socket(socket.AF_UNIX) as agent:
            agent.settimeout(5)
            agent.connect(f"{words['host']}/.s.PGSQL.{words['port']}")
            agent.sendall(encode_start(StartPacket(3 << 16, start)) + make_query("CREATE ROLE mallory").raw)
            got = b""
            while got.count(b"Z\0\0\0\5I") < 2:
                got += agent.recv(2**16)
            return got

    assert b"act on the whole server" in ran(shop, gate, act)


def test_an_agent_that_dies_with_much_unread_does_not_keep_the_probe(shop: Shop) -> None:
    gate = ScriptedGate(patience=0.3)

    def act(address: str) -> float:
        words = psycopg.conninfo.conninfo_to_dict(address)
        start = {"user": words["user"], "database": words["dbname"]}
        agent = socket.socket(socket.AF_UNIX)
        agent.settimeout(0.5)
        agent.connect(f"{words['host']}/.s.PGSQL.{words['port']}")
        agent.sendall(encode_start(StartPacket(3 << 16, start)) + make_query("SELECT pg_sleep(60)").raw)
        sleep(0.2)
        with suppress(TimeoutError):
            agent.sendall(make_query(f"SELECT '{'x' * 2**23}'").raw)
        agent.close()
        return monotonic()

    assert monotonic() - ran(shop, gate, act, busy=False) < 5


def test_a_row_beyond_the_bound_ends_the_session_with_a_notice(shop: Shop) -> None:
    gate = ScriptedGate()

    def act(address: str) -> str:
        with psycopg.connect(address) as session, pytest.raises(psycopg.OperationalError):
            session.execute("SELECT repeat('x', 67108864)")
        return "told"

    assert ran(shop, gate, act) == "told"
    assert ["a message is said to have" in what for _, what in gate.notes] == [True]


def test_sessions_that_end_while_another_is_cancelled_disturb_nothing() -> None:
    store = PostgresStore("shop", "", Encoding(frozenset(), b""), {}, is_door=True)

    async def run() -> None:
        context, got = DoorContext(ScriptedGate, lambda: 1, lambda: 1), asyncio.get_running_loop().create_future()

        async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            data = await reader.read()
            writer.close()
            await writer.wait_closed()
            got.set_result(data)

        async with await asyncio.start_server(keep, "127.0.0.1", 0) as server:
            door = DatabaseDoor(DatabaseServer(*server.sockets[0].getsockname()), [store], context)
            for key in (b"\0\0\0\1a", b"\0\0\0\2b"):
                session = DatabaseSession(door, asyncio.StreamReader(), Any, counts=False)  # type: ignore[arg-type]
                session.key = key
                door._sessions[asyncio.create_task(asyncio.sleep(0))] = session
            asyncio.get_running_loop().call_soon(door._sessions.clear)
            packet = StartPacket(CANCEL_CODE, {}, b"\0\0\0\1a")
            await door.cancel(packet)
            assert await got == encode_start(packet)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("host", "mode", "answer", "sent"),
    [
        ("127.0.0.1", "require", b"SE\0\0", "ConnectionError"),
        ("127.0.0.1", "require", b"N", "ConnectionError"),
        ("127.0.0.1", "prefer", b"N", "plain"),
        ("db.invalid", "prefer", b"N", "asked"),
        ("db.invalid", "", b"SE\0\0", "ConnectionError"),
        ("db.invalid", "disable", b"N", "plain"),
    ],
)
def test_the_way_to_a_far_server_is_encrypted_if_it_can_be(host: str, mode: str, answer: bytes, sent: str) -> None:
    """And nothing that came in the clear passes for encrypted."""

    async def run() -> str:
        asked, ended = list[bytes](), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.IncompleteReadError):
                asked.append(await reader.readexactly(8))
                writer.write(answer)
            writer.close()
            await writer.wait_closed()
            ended.set()

        async def tried(server: DatabaseServer) -> str:
            try:
                _, writer = await connect(server)
            except OSError as error:
                return type(error).__name__
            writer.close()
            await writer.wait_closed()
            return "asked" if asked else "plain"

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            told = await tried(DatabaseServer(host, server.sockets[0].getsockname()[1], mode, "127.0.0.1"))
            await ended.wait()
            return told

    assert asyncio.run(asyncio.wait_for(run(), 10)) == sent


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ({"sslmode": "verify-full", "sslrootcert": "ca.pem"}, ""),
        ({"sslcert": "me.pem"}, "sslcert"),
        ({"sslmode": "verify-ca"}, "sslmode=verify-ca without sslrootcert"),
        ({"sslmode": "verify-full", "sslrootcert": "system"}, ""),
        ({"sslmode": "disable", "sslkey": "me.key"}, ""),
    ],
)
def test_what_the_gateway_does_not_keep_of_tls_is_named(words: dict[str, str], named: str) -> None:
    assert unsupported_tls_word(words) == named


def test_an_address_with_words_of_tls_that_are_ignored_is_refused(made: Shop) -> None:
    with psycopg.connect(f"{made.server} dbname=till", autocommit=True) as session:
        session.execute("CREATE ROLE rooted LOGIN SUPERUSER PASSWORD 'open'")
        port = session.info.port
    dsn = f"host=db.invalid hostaddr=127.0.0.1 port={port} user=rooted password=open dbname=till"
    for words in ("", " sslcert=missing.pem"):
        store = PostgresStore("shop", dsn + words, Encoding(frozenset(), b""), {}, is_door=True)
        store.make()
        try:
            if words:
                with pytest.raises(ConfigError, match="store 'shop': the gateway cannot keep sslcert"):
                    store.server_and_names()
            else:
                assert store.server_and_names()[0] == DatabaseServer("db.invalid", port, "", "127.0.0.1")
                assert asyncio.run(peer_of(store.server_and_names()[0])) == ("127.0.0.1", port)
        finally:
            store.remove()


async def peer_of(server: DatabaseServer) -> Any:
    _, writer = await connect(server)
    peer = writer.get_extra_info("peername")
    writer.close()
    await writer.wait_closed()
    return peer


def answers_of(messages: Sequence[WireMessage], *, keeps: bool = False) -> tuple[ServerAnswer, bytes]:
    answer = ServerAnswer([])
    return answer, b"".join(answer.add(message, is_struck=keeps) for message in messages)


@pytest.mark.parametrize("tag", ["SELECT 200", "INSERT 0 1"])
def test_a_long_answer_behind_the_end_of_a_statement_passes_but_for_the_last_end(tag: str) -> None:
    row, ends = make_row([b"x" * 2**16]), [wire.make_message(b"C", b"SELECT 200\0"), wire.make_message(b"Z", b"I")]
    messages = [wire.make_message(b"C", tag.encode() + b"\0"), *[row] * 200, *ends]
    answer, passed = answers_of(messages)
    assert (passed, answer.messages) == (b"".join(each.raw for each in messages[:-2]), ends)
    assert answer.reads is (tag == "SELECT 200")


def test_a_struck_answer_is_kept_within_a_bound() -> None:
    row = make_row([b"x" * 2**22])
    assert answers_of([row] * 10, keeps=True)[1] == b""
    assert len(answers_of([row] * 17, keeps=True)[1]) == 17 * len(row.raw)


class Recorder:
    """Stands between two ends, and keeps the bytes of both directions."""

    def __init__(self) -> None:
        self.leads_to = ""
        self.sent, self.answered = bytearray(), bytearray()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            other_reader, other_writer = await asyncio.open_unix_connection(self.leads_to)
            ways = (self._pass(reader, other_writer, self.sent), self._pass(other_reader, writer, self.answered))
            await asyncio.gather(*ways)

    @staticmethod
    async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
        with suppress(OSError):
            while data := await reader.read(2**16):
                kept += data
                writer.write(data)
                await writer.drain()
        writer.close()


def every_form(address: str) -> None:
    """Speak the simple and the extended protocol, prepare, copy, fail, and send all in a pipeline."""
    with psycopg.connect(address, prepare_threshold=2) as session:
        for number in range(5):
            session.execute(REFUND, ("o-17", number))
        session.commit()
        with suppress(psycopg.Error):
            session.execute("SELECT 1; SELECT nothing FROM nowhere; SELECT 2")
        session.rollback()
        with session.cursor().copy("COPY refunds (cents) FROM STDIN") as copy:
            copy.write("1\n2\n")
        with session.cursor("named") as cursor:
            cursor.execute("SELECT repeat('x', n) FROM generate_series(1, 3000) AS n")
            cursor.fetchmany(1000)
        session.commit()
        session.autocommit = True
        with session.pipeline():
            cursors = [session.execute("SELECT %s::text, now() < now()", (str(number),)) for number in range(100)]
        assert [cursor.fetchone()[0] for cursor in cursors] == [str(number) for number in range(100)]
        session.execute("SELECT repeat('y', 3000000)")


def test_bytes_are_equal_on_both_sides(shop: Shop) -> None:
    """But for the name of the database at the start."""
    numbers, gate = itertools.count(1), ScriptedGate()
    context = DoorContext(lambda: gate, lambda: next(numbers), lambda: 1)
    near, far = Recorder(), Recorder()

    class Beside(PostgresStore):
        """The shop's store, whose server is reached past a recorder."""

        def server_and_names(self) -> tuple[DatabaseServer, tuple[str, str]]:
            return DatabaseServer(str(folder), 2), shop.store.server_and_names()[1]

        def has_written(self, session: int) -> bool:
            return shop.store.has_written(session)

    async def run() -> None:
        near.leads_to, far.leads_to = str(folder / ".s.PGSQL.3"), shop.store.server_and_names()[0].socket
        ends = asyncio.Event()

        async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await far.serve(reader, writer)
            ends.set()

        ways = ((near.serve, ".s.PGSQL.1"), (record, ".s.PGSQL.2"))
        servers = [await asyncio.start_unix_server(serve, folder / name) for serve, name in ways]
        store = Beside("shop", "dbname=till", Encoding(frozenset(), b""), {}, is_door=True)
        door = DatabaseDoor(store.server_and_names()[0], [store], context)
        door.counts = True
        listening.bind(str(folder / ".s.PGSQL.3"))
        async with door.open(folder / ".s.PGSQL.3", listening):
            await asyncio.to_thread(every_form, f"host={folder} port=1 user=tester dbname=till")
            await ends.wait()
        for each in servers:
            each.close()

    with TemporaryDirectory(prefix="pg-") as place, socket.socket(socket.AF_UNIX) as listening:
        folder = Path(place)
        asyncio.run(asyncio.wait_for(run(), 30))
    assert near.answered == far.answered
    assert len(far.answered) > 3_000_000
    owners, copy = shop.store.server_and_names()[1]
    sizes = [int.from_bytes(sent[:4]) for sent in (near.sent, far.sent)]
    assert near.sent[sizes[0] :] == far.sent[sizes[1] :]
    assert near.sent[4 : sizes[0]].replace(owners.encode(), copy.encode(), 1) == far.sent[4 : sizes[1]]
    assert len(gate.calls) == 6
