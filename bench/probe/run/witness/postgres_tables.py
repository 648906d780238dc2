"""The tables of a PostgreSQL database and their first state. The server hashes buckets of rows; only differing buckets are
read."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from bench.common.values import dataclass
from bench.probe.run.witness.rows import SCHEMA, RowPair, StoredRow, sql_name
from bench.record.probe_rows import SEQUENCES

if TYPE_CHECKING:
    import psycopg

    Session = psycopg.Connection[tuple[Any, ...]]

_BUCKET_COUNT = 4096
_NATIVE_TYPES = frozenset(("int2", "int4", "int8", "float4", "float8", "numeric", "bool"))
_USER_SCHEMAS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
_TABLES_QUERY = f"""
SELECT n.nspname, c.relname, c.relkind = 'r',
  array_agg(a.attname::text ORDER BY a.attnum), array_agg(t.typname::text ORDER BY a.attnum),
  coalesce((SELECT array_agg(k.attname::text ORDER BY u.place)
    FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS u (number, place), pg_attribute k
    WHERE i.indrelid = c.oid AND i.indisprimary AND k.attrelid = c.oid AND k.attnum = u.number), ARRAY[]::text[])
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND {_USER_SCHEMAS}
GROUP BY n.nspname, c.relname, c.relkind, c.oid ORDER BY 1, 2
"""
_OBJECTS_QUERY = f"""
SELECT CASE WHEN c.relkind IN ('v', 'm') THEN 'view' WHEN c.relkind IN ('i', 'I') THEN 'index' ELSE 'table' END,
  n.nspname || '.' || c.relname,
  CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) WHEN c.relkind IN ('i', 'I') THEN pg_get_indexdef(c.oid)
    ELSE (SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
        CASE WHEN a.attnotnull THEN 'NOT NULL' END, 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attnum)
      FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'i', 'I', 'f') AND {_USER_SCHEMAS}
UNION ALL SELECT 'constraint', n.nspname || '.' || r.relname || '.' || c.conname, pg_get_constraintdef(c.oid)
FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace WHERE {_USER_SCHEMAS}
UNION ALL SELECT 'trigger', n.nspname || '.' || r.relname || '.' || t.tgname, pg_get_triggerdef(t.oid)
FROM pg_trigger t JOIN pg_class r ON r.oid = t.tgrelid JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE NOT t.tgisinternal AND {_USER_SCHEMAS}
UNION ALL SELECT 'function', n.nspname || '.' || p.oid::regprocedure, pg_get_functiondef(p.oid)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind IN ('f', 'p') AND {_USER_SCHEMAS}
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""
_SEQUENCES_QUERY = f"""
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'S'
  AND {_USER_SCHEMAS}
"""


@dataclass(frozen=True)
class PostgresTable:
    """A table as the catalogue describes it. Partitions are read as the table to which they belong.

    only    whether rows of tables that inherit from it are left out
    kinds   the types of its columns
    key     the columns of its primary key
    """

    schema: str
    name: str
    only: bool
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def label(self) -> str:
        """The name of the table in rows."""
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"

    def text_of(self, columns: Sequence[str]) -> str:
        """Return SQL for these columns of a row as one text. A missing column is NULL."""
        return f"ROW({', '.join(sql_name(column) if column in self.columns else 'NULL' for column in columns)})::text"

    def expression(self, column: str) -> str:
        """Return SQL for a column as it is shown: a number, a boolean, or its text."""
        if column not in self.columns:
            return "NULL"
        return sql_name(column) + ("" if self.kinds[self.columns.index(column)] in _NATIVE_TYPES else "::text")

    @property
    def source(self) -> str:
        """The SQL after FROM that reads the table."""
        return f"{'ONLY ' if self.only else ''}{sql_name(self.schema)}.{sql_name(self.name)}"


_Sorted = tuple[tuple[int, str], str, StoredRow]
"""((bucket, identity), whole row as one text, values) of a row."""
Buckets = Mapping[int, tuple[int, int]]
"""Number of a bucket -> (number of its rows, sum of their hashes)."""
CatalogueRows = Mapping[tuple[str, ...], Mapping[str, object]]


@dataclass(frozen=True)
class DatabaseState:
    """The state of a database: its tables and their buckets by name, and the rows of its catalogue (objects and sequences)."""

    tables: Mapping[str, PostgresTable]
    buckets: Mapping[str, Buckets]
    catalogue: Mapping[str, CatalogueRows]

    @property
    def content(self) -> object:
        """A value that is equal for equal databases, and has a `repr`."""
        sums, catalogue = list[tuple[object, ...]](), dict[str, object]()
        for name, buckets in sorted(self.buckets.items()):  # of each table the number of rows, and the sum of their hashes
            sums.append((name, *map(sum, zip((0, 0), *buckets.values(), strict=True))))
        for label, rows in self.catalogue.items():
            catalogue[label] = sorted((key, sorted(row.items())) for key, row in rows.items())
        return sums, catalogue


def state_of(session: Session, ignores: Callable[[str], bool]) -> DatabaseState:
    """Return the state of the database in this session's transaction, without ignored tables and columns: its tables, digests
    of their rows in buckets, the definitions of its objects, and its sequences."""
    tables = {}
    for schema, name, only_keyword, columns, kinds, key in session.execute(_TABLES_QUERY.encode()).fetchall():
        table = PostgresTable(schema, name, only_keyword, tuple(columns), tuple(kinds), tuple(key))
        if not ignores(table.label):
            is_read = [column in key or not ignores(f"{table.label}.{column}") for column in columns]
            read_columns, read_kinds = tuple(compress(columns, is_read)), tuple(compress(kinds, is_read))
            tables[table.label] = replace(table, columns=read_columns, kinds=read_kinds)
    buckets = {name: _buckets_of(session, table, table.columns, table.key) for name, table in tables.items()}
    created: CatalogueRows = {
        (kind, name): {"definition": text} for kind, name, text in session.execute(_OBJECTS_QUERY.encode()).fetchall()
    }
    return DatabaseState(tables, buckets, {SCHEMA: created, SEQUENCES: dict(_sequences(session))})


def _sequences(session: Session) -> Iterator[tuple[tuple[str, ...], Mapping[str, object]]]:
    """Yield (key, values) of each sequence."""
    for schema, name in session.execute(_SEQUENCES_QUERY.encode()).fetchall():
        query = f"SELECT last_value, is_called FROM {sql_name(schema)}.{sql_name(name)}"
        value, is_called = session.execute(query.encode()).fetchall()[0]
        yield (name if schema == "public" else f"{schema}.{name}",), {"value": value, "is_called": is_called}


def _buckets_of(session: Session, table: PostgresTable, columns: Sequence[str], key: Sequence[str]) -> Buckets:
    """Return the number of rows and the sum of their hashes for each bucket of a table, as the server counts them."""
    query = (
        f"SELECT {_bucket(table, columns, key)}, count(*), sum(hashtextextended({table.text_of(columns)}, 0)::numeric)::text "
        f"FROM {table.source} GROUP BY 1"
    )
    return {bucket: (rows, int(hashes)) for bucket, rows, hashes in session.execute(query.encode())}


def _bucket(table: PostgresTable, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return SQL for the number of a row's bucket, which depends on its key, or on the whole row without a key."""
    return f"(hashtextextended({table.text_of(key or columns)}, 1) & {_BUCKET_COUNT - 1})::int"


@dataclass(frozen=True)
class ComparedTable:
    """The comparison of a table with its first state. A missing table or column counts as NULL."""

    before: PostgresTable | None
    current: PostgresTable | None
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def pairs(self, first: Session, current: Session, old: Buckets, new: Buckets) -> Iterator[RowPair]:
        """Yield the rows that differ as (row before, row now); None for a row that one state lacks.

        Args:
            first: A session in the first state.
            current: A session in the current state.
            old: The buckets of the first state.
            new: The buckets of the current state.
        """
        buckets = None  # all rows are compared, as is needed if the table itself has changed
        if self.before == self.current:
            buckets = sorted(bucket for bucket in {*old, *new} if old.get(bucket) != new.get(bucket))
        rows = (self._rows(first, self.before, buckets), self._rows(current, self.current, buckets))
        for removed, added in _differing_rows(*rows):
            if self.key and removed and added:
                yield removed[0], added[0]
            else:
                yield from ((row, None) for row in removed)
                yield from ((None, row) for row in added)

    def _rows(self, session: Session, table: PostgresTable | None, buckets: Sequence[int] | None) -> Iterator[_Sorted]:
        """Yield the rows of these buckets of a table (None: of all), ordered by bucket and identity. The identity is the key of
        the row as text, or the whole row if the table has no key."""
        if table is None:
            return
        bucket = _bucket(table, self.columns, self.key)
        columns = "".join(f", {table.expression(column)}" for column in self.columns)
        content, identity = table.text_of(self.columns), table.text_of(self.key or self.columns)
        condition = "" if buckets is None else f"WHERE {bucket} = ANY(ARRAY[{', '.join(map(str, buckets))}]::int[])"
        query = f'SELECT {bucket}, ({identity}) COLLATE "C", {content}{columns} FROM {table.source} {condition} ORDER BY 1, 2'
        with session.cursor("rows") as cursor:
            for row in cursor.execute(query.encode()):
                yield (row[0], row[1]), row[2], row[3:]


def compare(before: PostgresTable | None, current: PostgresTable | None) -> ComparedTable:
    """Return the comparison of a table with its first state."""
    tables = [table for table in (before, current) if table]
    columns = tuple(dict.fromkeys(column for table in tables for column in table.columns))
    return ComparedTable(before, current, columns, tables[0].key if tables[0].key == tables[-1].key else ())


def _differing_rows(first: Iterator[_Sorted], second: Iterator[_Sorted]) -> Iterator[tuple[list[StoredRow], list[StoredRow]]]:
    """Yield (rows that only the first stream has, rows that only the second has) for each identity for which the two sorted
    streams differ. A row counts as often as it occurs."""
    merged = heapq.merge(_with_stream(0, first), _with_stream(1, second), key=itemgetter(0, 1))
    for _, rows in groupby(merged, key=itemgetter(0)):
        streams: tuple[list[tuple[str, StoredRow]], list[tuple[str, StoredRow]]] = ([], [])
        for _, stream, content, values in rows:
            streams[stream].append((content, values))
        common = Counter(content for content, _ in streams[0]) & Counter(content for content, _ in streams[1])
        removed, added = (list(_surplus_rows(rows, common.copy())) for rows in streams)
        if removed or added:
            yield removed, added


def _with_stream(stream: int, rows: Iterator[_Sorted]) -> Iterator[tuple[tuple[int, str], int, str, StoredRow]]:
    """Yield rows with the number of their stream after the identity."""
    return ((identity, stream, content, values) for identity, content, values in rows)


def _surplus_rows(rows: list[tuple[str, StoredRow]], common: Counter[str]) -> Iterator[StoredRow]:
    """Yield the values of the rows that are not common to both streams."""
    for content, values in rows:
        if common[content]:
            common[content] -= 1
        else:
            yield values
