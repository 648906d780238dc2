"""Finds the rows of an SQLite database that are on changed pages. Rows on other pages need not be compared.

If a table has the same root page number, and all its former pages have the same bytes, it has the same rows.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_READ_BYTES = 2**20
_WAL_HEADER_BYTES, _FRAME_HEADER_BYTES, _FILE_HEADER_BYTES = 32, 24, 100
_LEAF_KIND, _INNER_KIND, _PAGE_NUMBER = 13, 5, struct.Struct(">I")
_ROOTS_QUERY = "SELECT name, rootpage, sql FROM {schema}.sqlite_schema WHERE type = 'table'"


def pages_of(database: sqlite3.Connection) -> dict[int, str]:
    """Return number of a page -> name of the table whose rows are on it; {} if this SQLite cannot list the pages."""
    query = "SELECT pageno, name FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE type = 'table')"
    with suppress(sqlite3.OperationalError):
        return dict(database.execute(query).fetchall())
    return {}


def touched_rows(database: sqlite3.Connection, path: Path, first: Path, pages: dict[int, str]) -> dict[str, set[int]]:
    """Return name of a table -> numbers of all rows that may differ from the first state: rows on changed pages, and on pages
    that were added to the table or removed from it. In a table that is not in the result, any row may differ.

    Args:
        database: The database at `path`, in a transaction that has read from it; the first state is attached as `first`.
        path: The file of the database.
        first: The file of the first state.
        pages: The tables of the first state's pages.
    """
    (page_size,), (former_size,) = (database.execute(f"PRAGMA {schema}.page_size").fetchone() for schema in ("main", "first"))
    if not pages or page_size != former_size:
        return {}
    current_roots, first_roots = (
        set(database.execute(_ROOTS_QUERY.format(schema=schema)).fetchall()) for schema in ("main", "first")
    )
    changed, touched = set(_changed_pages(path, first, page_size)), dict[str, set[int]]()
    changed_tables = {pages.get(page) for page in changed}
    journal = path.with_name(f"{path.name}-wal")
    has_no_wal = not (journal.exists() and journal.stat().st_size)
    with path.open("rb") as file, first.open("rb") as first_file:
        for name, root, sql in current_roots & first_roots:
            if sql.upper().startswith("CREATE VIRTUAL"):
                continue
            if name not in changed_tables:
                touched[name] = set()
            elif has_no_wal:  # otherwise a page of the file can be older than its copy in the WAL
                former_pages = {page for page in changed if pages.get(page) == name}
                with suppress(_NotComparable):
                    first_pages, current_pages = _Pages(first_file, page_size), _Pages(file, page_size)
                    touched[name] = _rows_between(first_pages, current_pages, root, changed, former_pages)
    return touched


class _NotComparable(Exception):
    """The pages of a table are no tree of rows with numbers, or a change is not on the page with the row's number. All rows of
    the table then have to be compared."""


@dataclass(frozen=True)
class _Pages:
    """The pages of a file in SQLite's format, each of `size` bytes. A page of a table is a leaf with rows, or refers to other
    pages."""

    file: BinaryIO
    size: int

    def tree(self, root: int) -> tuple[set[int], set[int]]:
        """Return the leaves of a table, and its inner pages. All leaves have the same depth."""
        depth, page = 0, root
        while (children := self._children(page)) is not None:
            depth, page = depth + 1, children[0]
        level, inner = [root], set[int]()
        for _ in range(depth):
            inner.update(level)
            level = [child for page in level for child in self._children(page) or ()]
        return set(level), inner

    def numbers(self, leaf: int) -> Iterator[int]:
        """Yield the row numbers on a leaf."""
        _, content, cells = self._cells(leaf, 8)
        for cell in cells:
            _, number_offset = _varint(content, cell)
            number, _ = _varint(content, number_offset)
            yield number - 2**64 if number >= 2**63 else number

    def _children(self, page: int) -> list[int] | None:
        """Return the pages to which a page refers; None for a leaf."""
        kind, content, cells = self._cells(page, 12)
        if kind == _LEAF_KIND:
            return None
        start = _FILE_HEADER_BYTES if page == 1 else 0
        return [_PAGE_NUMBER.unpack_from(content, offset)[0] for offset in (*cells, start + 8)]

    def _cells(self, page: int, header: int) -> tuple[int, bytes, tuple[int, ...]]:
        """Return the kind of a page, its bytes, and the offsets of its cells."""
        self.file.seek((page - 1) * self.size)
        content, start = self.file.read(self.size), _FILE_HEADER_BYTES if page == 1 else 0
        if len(content) != self.size or content[start] not in (_LEAF_KIND, _INNER_KIND):
            raise _NotComparable
        count = int.from_bytes(content[start + 3 : start + 5], "big")
        return content[start], content, struct.unpack_from(f">{count}H", content, start + header)


def _rows_between(first: _Pages, current: _Pages, root: int, changed: set[int], former_pages: set[int]) -> set[int]:
    """Return the numbers of the rows of a table that may differ: all rows on its leaves that were changed, added or removed.

    Args:
        first: The pages of the first state.
        current: The pages of the database now.
        root: The table's root page in both.
        changed: The pages of the file that were changed.
        former_pages: Those of them that were the table's in the first state.

    Raises:
        _NotComparable: A page outside the tree has changed, which has the rest of a long row.
    """
    leaves, inner = first.tree(root)
    if former_pages - leaves - inner:
        raise _NotComparable
    current_leaves, _ = current.tree(root)
    numbers = {number for leaf in leaves & (changed | (leaves - current_leaves)) for number in first.numbers(leaf)}
    return numbers.union(*(current.numbers(leaf) for leaf in current_leaves & (changed | (current_leaves - leaves))))


def _varint(content: bytes, start: int) -> tuple[int, int]:
    """Return a variable-length integer, and the offset after it."""
    number = 0
    for position in range(start, start + 8):
        number = number << 7 | content[position] & 0x7F
        if content[position] < 0x80:
            return number, position + 1
    return number << 8 | content[start + 8], start + 9


def _changed_pages(path: Path, first: Path, page_size: int) -> Iterator[int]:
    """Yield the numbers of the pages that differ from the first state, or are in the WAL."""
    with path.open("rb") as file, first.open("rb") as first_file:
        step, start = max(_READ_BYTES, page_size), 0
        while first_piece := first_file.read(step):
            piece = file.read(step)
            if piece != first_piece:
                for offset in range(0, len(first_piece), page_size):
                    if piece[offset : offset + page_size] != first_piece[offset : offset + page_size]:
                        yield (start + offset) // page_size + 1
            start += step
    with suppress(FileNotFoundError), path.with_name(f"{path.name}-wal").open("rb") as journal:
        frame = _WAL_HEADER_BYTES
        while journal.seek(frame) and (number := journal.read(4)):
            yield int.from_bytes(number, "big")
            frame += _FRAME_HEADER_BYTES + page_size
