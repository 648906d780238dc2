"""Statements beyond the bound are counted, and a call that writes has a name whatever its size."""

from __future__ import annotations

import json

import pytest

from bench.probe.run.gateway.database_statements import (
    MAX_SHAPE_CHARS,
    MAX_STATEMENTS_SIZE,
    ExecutedStatement,
    StatementRecord,
    record_of,
    shape_of,
)
from bench.wire.postgres import MAX_SPLIT_CHARS, statements_of


def executed(sql: str, *values: bytes) -> ExecutedStatement:
    [statement] = statements_of(sql)
    return ExecutedStatement(statement, values)


def test_a_write_with_a_value_beyond_the_bound_names_its_call() -> None:
    record = StatementRecord()
    record.add(executed("SELECT 1 FROM bills"))
    record.add(executed("INSERT INTO payments VALUES ($1)", b"x" * (MAX_STATEMENTS_SIZE + 1)))
    [first], [more] = record.summary()
    assert (first.statement.name, first.values) == ("INSERT payments", ())
    assert record.writes and not record.begins and isinstance(more, dict) and more["further"] == 1


def test_a_record_whose_only_statement_is_beyond_the_bound_can_still_be_asked_how_it_begins() -> None:
    record, whole = StatementRecord(), StatementRecord()
    record.add(executed(f"INSERT INTO payments VALUES ('{'x' * (MAX_STATEMENTS_SIZE + 1)}')"))
    whole.add(executed("BEGIN"))
    whole.extend(record)
    assert (record.statements, record.begins, whole.begins) == ([], False, True)
    for each in (record, whole):
        [first], _ = each.summary()
        assert (first.statement.name, first.statement.text) == ("INSERT payments", "INSERT INTO payments VALUES ('')")


PADDING = "x" * (MAX_SPLIT_CHARS + 1)


@pytest.mark.parametrize(
    "values",
    [
        f"('c4n4ry', '{PADDING}')",
        f"(4711, '{PADDING}')",
        f"('{PADDING}', 'c4n4ry', 4711)",
        f"('{PADDING}', $$c4n4ry$$, $tag$c4n4ry$tag$)",
        f"('{PADDING}' /* c4n4ry */)",
        f"('{PADDING}', '''c4n4ry''')",
        f"('', E'c4n4ry', -4.711e9, '{PADDING}')",
    ],
)
def test_of_a_statement_beyond_the_bound_only_the_shape_is_recorded(values: str) -> None:
    record = StatementRecord()
    record.add(executed(f"INSERT INTO cards VALUES {values} RETURNING {'id, ' * MAX_SHAPE_CHARS} pin"))
    [first], _ = record.summary()
    text = json.dumps(record_of(first, frozenset({"pin"})))
    assert "INSERT INTO cards VALUES" in text and len(text) < MAX_SHAPE_CHARS + 50
    assert not any(secret in text for secret in ("c4n4ry", "4711", "4.711", PADDING[:100]))


def test_a_hidden_number_stands_under_its_own_name_alone() -> None:
    assert record_of(executed("UPDATE cards SET pin = 4711, t1 = $2"), frozenset({"pin"})) == {
        "sql": "UPDATE cards SET pin = 0, t1 = $2",
        "pin": ["UPDATE cards SET pin = 4711, t1 = $2"],
    }
    assert shape_of("SELECT '', a.b2 FROM t3 LIMIT 10") == "SELECT '', a.b2 FROM t3 LIMIT 0"
