"""A table of a report, and the table as Markdown and as CSV. A template makes its HTML.

If all rows have the same condition (CONDITION_COLUMNS), Markdown and HTML have it once, in the title; CSV keeps its column.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, TypeVar

from bench.read.render.cells import NARROW, NARROW_NOTE, Cell, text_of
from bench.read.render.escaping import escape_csv, escape_markdown

Item = TypeVar("Item")
Source = TypeVar("Source")
CONDITION_COLUMNS = ("Scenario", "Pack", "Model", "Fault plan")
"""The titles of columns for the condition in which a row's numbers were measured."""


@dataclass(frozen=True)
class Table:
    """A table of a report. Each row has as many cells as there are columns.

    name      the name of its files
    title     the text above it
    columns   their titles, with units
    rows      cells: texts, whole numbers, or `bench.read.render.cells`, which know how they are shown
    notes     texts below it
    section   its place in a report (`bench.read.render.table_part.SECTIONS`)
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
            A new table; this table if the rows share no condition.
        """
        shared = dict[str, str]()
        for name, cells in zip(self.columns, zip(*self.rows, strict=True), strict=False):
            if name in CONDITION_COLUMNS and len(cells) >= least and len(set(cells)) == 1:
                shared[name] = text_of(cells[0])
        if not shared:
            return self
        text = ", ".join(f"{name.lower()} {value}" for name, value in shared.items())
        return replace(self.without(shared), title=f"{self.title}: {text}")

    def without(self, columns: Collection[str]) -> Table:
        """Return the table without some columns.

        Args:
            columns: Their titles.

        Returns:
            A new table.
        """
        indices = [index for index, name in enumerate(self.columns) if name not in columns]
        rows = tuple(tuple(row[index] for index in indices) for row in self.rows)
        return replace(self, columns=tuple(self.columns[index] for index in indices), rows=rows)


@dataclass(frozen=True)
class TableColumn(Generic[Item]):
    """A column of a table whose rows are all made from items of one type.

    title   the text above it
    cell    (the item) -> the cell
    """

    title: str
    cell: Callable[[Item], Cell]

    def of(self, read: Callable[[Source], Item]) -> TableColumn[Source]:
        """Return the column for rows that are made from other objects, which hold the item.

        Args:
            read: (the other object) -> the item.

        Returns:
            A column with the same title.
        """
        return TableColumn(self.title, lambda source: self.cell(read(source)))


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
        cut_note = f"{most} of {len(table.rows)} rows are shown; a report that is made has all in tables/{table.name}.md."
        table, notes = replace(table, rows=table.rows[:most]), (*notes, cut_note)
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
    fields: list[tuple[int, str]] = []
    for index in range(len(table.columns)):
        suffixes = dict.fromkeys(chain.from_iterable(row[index] for row in rows)) or {"": None}
        fields += ((index, suffix) for suffix in suffixes)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([escape_csv(table.columns[index] + suffix) for index, suffix in fields])
    writer.writerows([row[index].get(suffix, "") for index, suffix in fields] for row in rows)
    return file.getvalue()


def _fields(cell: Cell) -> dict[str, object]:
    """Return a cell's texts or numbers by the suffix of their column's title."""
    if isinstance(cell, str):
        return {"": escape_csv(cell)}
    return {"": cell} if isinstance(cell, int) else cell.numbers()
