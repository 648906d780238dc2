"""A table, and its forms in Markdown and CSV. The page makes its own.

If all rows share a circumstance, CSV keeps its column. The other forms say it once, in the title.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from bench.read.render.cells import NARROW, NARROW_NOTE, Cell, text_of
from bench.read.render.escaping import escape_csv, escape_markdown

Item = TypeVar("Item")
Whole = TypeVar("Whole")
CIRCUMSTANCES = ("Scenario", "Pack", "Model", "Fault plan")
"""Columns that say where a row's numbers were measured."""


@dataclass(frozen=True)
class Table:
    """A table of a report. Each row has as many cells as there are columns.

    name      the name of its files
    title     the text above it
    columns   their titles, with units
    rows      cells: texts, whole numbers, or `bench.read.render.cells`, which know how they are shown
    notes     texts below it
    section   its place in a report (`bench.read.report.table_part.SECTIONS`)
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    section: str = "more"

    def texts(self) -> list[list[str]]:
        """Return the rows as people read them.

        Returns:
            A list of texts for each row.
        """
        return [[text_of(cell) for cell in row] for row in self.rows]

    @property
    def footer(self) -> tuple[str, ...]:
        """The notes, and the meaning of the sign for an interval that is too narrow, if a cell has this sign."""
        is_marked = any(NARROW in text for row in self.texts() for text in row)
        return (*self.notes, NARROW_NOTE) if is_marked else self.notes

    def shortened(self, least: int = 2) -> Table:
        """Return the table with the conditions that all rows share moved into the title.

        Args:
            least: A table with fewer rows is not shortened.

        Returns:
            A new table; this table if no circumstance is shared.
        """
        shared = [
            place
            for place, name in enumerate(self.columns)
            if name in CIRCUMSTANCES and len(self.rows) >= least and len({row[place] for row in self.rows}) == 1
        ]
        if not shared:
            return self
        text = ", ".join(f"{self.columns[place].lower()} {text_of(self.rows[0][place])}" for place in shared)
        return replace(self.without([self.columns[place] for place in shared]), title=f"{self.title}: {text}")

    def without(self, columns: Collection[str]) -> Table:
        """Return the table without some columns.

        Args:
            columns: Their titles.

        Returns:
            A new table.
        """
        kept = [place for place, name in enumerate(self.columns) if name not in columns]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in kept), rows=rows)


@dataclass(frozen=True)
class TableColumn(Generic[Item]):
    """A column of a table whose rows are all made from items of one type.

    title   the text above it
    cell    (the item) -> the cell
    """

    title: str
    cell: Callable[[Item], Cell]

    def of(self, read: Callable[[Whole], Item]) -> TableColumn[Whole]:
        """Return the column for rows that are made from a larger object which holds the item.

        Args:
            read: (the larger object) -> the item.

        Returns:
            A column with the same title.
        """
        return TableColumn(self.title, lambda whole: self.cell(read(whole)))


def table_of(
    name: str, title: str, columns: Sequence[TableColumn[Item]], items: Iterable[Item], notes: Iterable[str] = ()
) -> Table:
    """Make a table with a row for each item.

    Args:
        name: The name of its files.
        title: The text above it.
        columns: The columns.
        items: One for each row.
        notes: The texts below it.

    Returns:
        The table.
    """
    rows = tuple(tuple(column.cell(item) for column in columns) for item in items)
    return Table(name, title, tuple(column.title for column in columns), rows, tuple(notes))


# Markdown


def markdown(table: Table, most: int | None = None) -> str:
    """Return a table as Markdown, shortened.

    Args:
        table: The table.
        most: The most rows that are shown; None shows all.

    Returns:
        A heading, the table and its notes. The last note says how many rows are not shown, and which file has them.
    """
    table = table.shortened()
    notes = table.footer
    if most is not None and len(table.rows) > most:
        left = f"{most} of {len(table.rows)} rows are shown; a report that is made has all in tables/{table.name}.md."
        table, notes = replace(table, rows=table.rows[:most]), (*notes, left)
    lines = [f"### {escape_markdown(table.title)}", ""]
    lines.append("| " + " | ".join(map(escape_markdown, table.columns)) + " |")
    lines.append("|" + "|".join(" --- " for _ in table.columns) + "|")
    lines += ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in table.texts()]
    lines += ["", *(f"- {escape_markdown(note)}" for note in notes)] if notes else []
    return "\n".join(lines) + "\n"


# CSV


def comma_separated(table: Table) -> str:
    """Return a table as CSV, with all columns.

    Args:
        table: The table.

    Returns:
        The text. A column of numbers is split, a column for each kind of number. A missing number is an empty field.
    """
    rows = [[_fields(cell) for cell in row] for row in table.rows]
    kinds = [list(dict.fromkeys(kind for row in rows for kind in row[place])) or [""] for place in range(len(table.columns))]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(
        [escape_csv(name + kind) for name, column_kinds in zip(table.columns, kinds, strict=True) for kind in column_kinds]
    )
    for row in rows:
        writer.writerow(
            [fields.get(kind, "") for fields, column_kinds in zip(row, kinds, strict=True) for kind in column_kinds]
        )
    return written.getvalue()


def _fields(cell: Cell) -> dict[str, object]:
    if isinstance(cell, str):
        return {"": escape_csv(cell)}
    return {"": cell} if isinstance(cell, int) else cell.numbers()
