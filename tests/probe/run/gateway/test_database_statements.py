"""Statements beyond the bound are counted, and a call that writes has a name whatever its size."""

from __future__ import annotations

from bench.probe.run.gateway.database_statements import LARGEST_KEPT, LONGEST_FIRST, ExecutedStatement, StatementRecord
from bench.wire.postgres import statements_of


def executed(sql: str, *values: bytes) -> ExecutedStatement:
    [statement] = statements_of(sql)
    return ExecutedStatement(statement, values)


def test_a_write_with_a_value_beyond_the_bound_names_its_call() -> None:
    record = StatementRecord()
    record.add(executed("SELECT 1 FROM bills"))
    record.add(executed("INSERT INTO payments VALUES ($1)", b"x" * (LARGEST_KEPT + 1)))
    [first], [more] = record.summary()
    assert (first.statement.name, first.values) == ("INSERT payments", ())
    assert record.writes and not record.begins and isinstance(more, dict) and more["further"] == 1


def test_a_record_whose_only_statement_is_beyond_the_bound_can_still_be_asked_how_it_begins() -> None:
    record, whole = StatementRecord(), StatementRecord()
    record.add(executed(f"INSERT INTO payments VALUES ('{'x' * (LARGEST_KEPT + 1)}')"))
    whole.add(executed("BEGIN"))
    whole.extend(record)
    assert (record.kept, record.begins, whole.begins) == ([], False, True)
    for each in (record, whole):
        [first], _ = each.summary()
        assert first.statement.name == "INSERT payments" and len(first.statement.text) == LONGEST_FIRST
