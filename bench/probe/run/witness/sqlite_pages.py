"""Which tables of a SQLite database have the same pages as in its first state. Their rows need not be compared.

A table whose root page has the same number, and all of whose former pages have the same bytes, has the same rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

_PIECE = 2**20
_WAL_HEADER, _FRAME_HEADER = 32, 24
_ROOTS = "SELECT name, rootpage, sql FROM {schema}.sqlite_schema WHERE type = 'table'"


def pages_of(database: sqlite3.Connection) -> dict[int, str]:
    """Return the table of each page that holds rows. It is empty if this SQLite cannot list them."""
    query = "SELECT pageno, name FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE type = 'table')"
    with suppress(sqlite3.OperationalError):
        return dict(database.execute(query).fetchall())
    return {}


def same_tables(database: sqlite3.Connection, path: Path, first: Path, pages: dict[int, str]) -> Collection[str]:
    """Return tables that are the same as in the first state. Others may be the same, too.

    Args:
        database: The database at `path`, in a transaction that has read from it; the first state is attached as `first`.
        path: Its file.
        first: The file of the first state.
        pages: The tables of the first state's pages.
    """
    (size,), (former,) = (database.execute(f"PRAGMA {schema}.page_size").fetchone() for schema in ("main", "first"))
    if not pages or size != former:
        return ()
    now, before = (set(database.execute(_ROOTS.format(schema=schema)).fetchall()) for schema in ("main", "first"))
    changed = {pages.get(page) for page in _changed(path, first, size)}
    return {name for name, _, sql in now & before if name not in changed and not sql.upper().startswith("CREATE VIRTUAL")}


def _changed(path: Path, first: Path, size: int) -> Iterator[int]:
    """Yield the pages that have other bytes than in the first state, or that a journal holds."""
    with path.open("rb") as file, first.open("rb") as other:
        step, start = max(_PIECE, size), 0
        while former := other.read(step):
            piece = file.read(step)
            if piece != former:
                for at in range(0, len(former), size):
                    if piece[at : at + size] != former[at : at + size]:
                        yield (start + at) // size + 1
            start += step
    with suppress(FileNotFoundError), path.with_name(f"{path.name}-wal").open("rb") as journal:
        place = _WAL_HEADER
        while journal.seek(place) and (number := journal.read(4)):
            yield int.from_bytes(number, "big")
            place += _FRAME_HEADER + size
