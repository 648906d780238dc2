"""PostgreSQL's messages are split off whole, however the bytes come, and statements as the server splits them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.wire.postgres import (
    CANCEL_CODE,
    MAX_SPLIT_CHARS,
    MAX_STATEMENTS,
    TLS_CODE,
    MalformedMessage,
    MessageReader,
    StartPacket,
    acts_beyond_database,
    cells_of,
    columns_of,
    encode_start,
    error_of,
    first_texts,
    make_error,
    make_message,
    make_row,
    parse_bind,
    parse_start,
    start_size,
    statements_of,
)

KINDS = st.integers(65, 122).map(lambda number: bytes([number]))
MESSAGES = st.lists(st.builds(make_message, KINDS, st.binary(max_size=40)), max_size=8)
CELLS = st.lists(st.none() | st.binary(max_size=20), max_size=6)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@given(MESSAGES, st.lists(st.integers(0, 400), max_size=12))
def test_messages_are_the_same_however_the_bytes_come(messages: list[object], cuts: list[int]) -> None:
    data = b"".join(message.raw for message in messages)  # type: ignore[attr-defined]
    places = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    reader = MessageReader()
    messages_read = [each for start, end in pairwise(places) for each in reader.messages(data[start:end])]
    assert messages_read == messages
    assert reader.size == 0


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_wait_or_are_refused(data: bytes) -> None:
    reader = MessageReader()
    try:
        messages_read = list(reader.messages(data))
    except MalformedMessage:
        return
    assert b"".join(message.raw for message in messages_read) + bytes(reader._data) == data


@given(st.binary(max_size=60))
def test_a_body_is_read_or_refused(body: bytes) -> None:
    for read in (parse_bind, cells_of, columns_of, error_of, lambda message: first_texts(message, 2)):
        try:
            read(make_message(b"B", body))
        except MalformedMessage as refused:
            assert str(refused)


@given(CELLS)
def test_a_row_holds_its_cells(cells: list[bytes | None]) -> None:
    assert cells_of(make_row(cells)) == cells


@given(WORDS, WORDS, CELLS)
def test_what_is_bound_is_read(portal: str, statement: str, cells: list[bytes | None]) -> None:
    body = portal.encode() + b"\0" + statement.encode() + b"\0" + b"\0\1\0\1" + make_row(cells).body + b"\0\0"
    bound = parse_bind(make_message(b"B", body))
    assert (bound.portal, bound.statement, bound.values) == (portal, statement, cells)


@given(st.dictionaries(WORDS, WORDS, min_size=1, max_size=5))
def test_a_start_packet_is_read_as_it_was_made(parameters: dict[str, str]) -> None:
    packet = StartPacket(3 << 16, parameters)
    raw = encode_start(packet)
    assert start_size(raw[:4]) == len(raw)
    assert parse_start(raw) == packet


@pytest.mark.parametrize("packet", [StartPacket(TLS_CODE, {}), StartPacket(CANCEL_CODE, {}, b"\0\0\0\7secret")])
def test_a_request_before_the_start_is_read_as_it_was_made(packet: StartPacket) -> None:
    assert parse_start(encode_start(packet)) == packet


@pytest.mark.parametrize("raw", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01", b"\0\0\0\x08\0\2\0\0"])
def test_another_protocol_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        parse_start(raw[: start_size(raw[:4])])


def test_an_error_has_its_code_and_its_text() -> None:
    assert error_of(make_error("FATAL", "57P01", "gone")) == {"S": "FATAL", "V": "FATAL", "C": "57P01", "M": "gone"}


SQL = {
    "SELECT 1": ["SELECT"],
    "SELECT 1;": ["SELECT"],
    " ;; ": [],
    "-- nothing; at all": [],
    "/* a /* nested; */ one; */ COMMIT": ["COMMIT"],
    "INSERT INTO public.refunds (a) VALUES (';'), ('it''s; ')": ["INSERT public.refunds"],
    r"INSERT INTO t VALUES (E'\';'); END": ["INSERT t", "END"],
    "UPDATE ONLY accounts SET x = $1; DELETE FROM carts": ["UPDATE accounts", "DELETE carts"],
    "SELECT $tag$ ; FROM nowhere $other$ $tag$, $1 FROM orders": ["SELECT orders"],
    'SELECT ";" FROM "odd; name"."t"': ['SELECT "odd; name"."t"'],
    "(SELECT a FROM b)": ["SELECT b"],
    "select pay(17)": ["SELECT pay"],
    "WITH gone AS (DELETE FROM carts RETURNING *) SELECT * FROM gone": ["WITH carts"],
    "COPY refunds (cents) FROM STDIN": ["COPY refunds"],
    "PREPARE TRANSACTION 'x'": ["PREPARE TRANSACTION"],
    "SELECT 'it does not end": ["SELECT"],
    "begin; insert into a values (1); commit": ["BEGIN", "INSERT a", "COMMIT"],
}


@pytest.mark.parametrize("sql", SQL)
def test_a_text_is_split_into_named_statements(sql: str) -> None:
    assert [statement.name for statement in statements_of(sql)] == SQL[sql]


@given(st.text("abc'\"$;-/*\\ E\n", max_size=60))
def test_any_text_is_split_without_a_loss(sql: str) -> None:
    """What stands between two statements is nothing but blanks, comments and semicolons."""
    at = 0
    for statement in statements_of(sql):
        at = sql.index(statement.text, at) + len(statement.text)
        assert statement.skeleton
    assert at <= len(sql)


@pytest.mark.parametrize("sql", ["a;" * 2**17, "'';" * 2**19 + "SELECT 1"])
def test_a_text_of_many_statements_is_split_within_a_bound_and_keeps_the_rest(sql: str) -> None:
    statements = statements_of(sql)
    assert len(statements) <= MAX_STATEMENTS
    assert "".join(statement.text + ";" for statement in statements).strip(";") == sql.strip(";")


OUT = [
    "COPY refunds TO PROGRAM 'sh'",
    "copy (select ';') to program $$sh$$ with (format csv)",
    "COPY refunds FROM PROGRAM E'sh'",
    "SELECT 1; drop /* ; */ database shop",
    "ALTER SYSTEM SET fsync = off",
    "CREATE USER mallory SUPERUSER",
    "-- a line\nDROP TABLESPACE fast",
    "SELECT 1;" * MAX_STATEMENTS + "DROP ROLE shop",
    f"SELECT '{'x' * MAX_SPLIT_CHARS}'; COPY refunds TO PROGRAM 'sh'",
]
WITHIN = [
    "COPY refunds FROM STDIN",
    "INSERT INTO t VALUES ('; DROP DATABASE shop')",
    "CREATE USER MAPPING FOR shop SERVER far",
    "CREATE TABLE role (program text); COPY role (program) TO STDOUT",
    'SELECT "drop database" FROM t -- ; DROP ROLE shop',
]


@pytest.mark.parametrize(("sql", "expected"), [*((sql, True) for sql in OUT), *((sql, False) for sql in WITHIN)])
def test_a_statement_that_reaches_out_of_its_database_is_known(sql: str, expected: bool) -> None:
    assert acts_beyond_database(sql) is expected
