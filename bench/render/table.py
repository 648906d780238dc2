"""One representation of a table, in Markdown and CSV; `latex` and the page have forms of their own.

A cell knows its numbers, so that CSV has each in a column of its own, where the others show one text. What holds for all rows
the others say once, in the title, where CSV has a column of it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from bench.analysis.per_solved import PerSolved
from bench.analysis.statistics import Mean, RateDifference, Share
from bench.render.escaping import escape_csv, escape_markdown

Item = TypeVar("Item")
Whole = TypeVar("Whole")
NOTHING, UNKNOWN, NONE_SOLVED = "n/a", "unknown", "none solved"
TOO_FEW, TOO_WIDE = "(too few to say)", 20
"""What stands for the interval of an amount that ends beyond so many times the amount: it is exact, and says nothing."""


@dataclass(frozen=True)
class Number:
    """`digits` stand behind the point."""

    value: float | None
    digits: int = 0
    percent: bool = False

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        return _shown(self.value, self.digits, self.percent)

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        return {"": self.value}


@dataclass(frozen=True)
class Estimate:
    """A mean of ours; `with_n` where the number of values is not that of the column."""

    mean: Mean
    digits: int = 0
    with_n: bool = False

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        mean = self.mean
        if mean.mean is None:
            return NOTHING
        value, sd = _shown(mean.mean, self.digits), _shown(mean.sd, self.digits)
        interval = _interval(mean.mean, mean.low, mean.high, self.digits) or NOTHING
        shown = f"{value} ± {sd} {interval}" if mean.sd is not None else f"{value} (sd, interval {NOTHING})"
        return f"{shown}, N={mean.n}" if self.with_n else shown

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        mean = self.mean
        return {"": mean.mean, " sd": mean.sd, " low": mean.low, " high": mean.high, " n": mean.n}


@dataclass(frozen=True)
class BoundedNumber:
    """A number with its 95% interval, where what it is of stands elsewhere in the row."""

    value: float | None
    low: float | None
    high: float | None
    digits: int = 0
    percent: bool = False

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        if self.value is None:
            return NOTHING
        interval = _interval(self.value, self.low, self.high, self.digits, self.percent) or f"(interval {NOTHING})"
        return f"{_shown(self.value, self.digits, self.percent)} {interval}"

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        return {"": self.value, " low": self.low, " high": self.high}


@dataclass(frozen=True)
class AdjustedP:
    """A p-value after a correction.

    floor  the least that so many pairs can give before it, where it is just that: then it says how many pairs there were, and
           not how far apart the two lie
    errs   how often the test at 5% found a difference that was none, in the worst of the simulated worlds at so many pairs;
           None where it did so no more often than it should
    """

    p: float | None
    floor: float | None = None
    errs: float | None = None

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        if self.p is None:
            return "–"
        text = f"{_shown(self.p, 3)}{'' if self.floor is None else ' (floor)'}"
        return text if self.errs is None else f"{text}, errs in {_shown(self.errs, 1, percent=True)}"

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        return {"": self.p, " floor": self.floor, " errs": self.errs}


@dataclass(frozen=True)
class Rate:
    """k of n with its interval; percentages with one digit, so that 2/100 and 3/1000 can be told apart."""

    share: Share

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        share = self.share
        if share.rate is None:
            return f"{NOTHING} (0/0)"
        low, high = _shown(share.low, 1, percent=True), _shown(share.high, 1, percent=True)
        return f"{share.k}/{share.n} = {_shown(share.rate, 1, percent=True)} [{low}, {high}]"

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        share = self.share
        return {"": share.rate, " low": share.low, " high": share.high, " k": share.k, " n": share.n}


@dataclass(frozen=True)
class SolvedOf:
    """What became of one instance in one arm: k of n trials were solved, and what they took in all."""

    k: int
    n: int
    tokens: int

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        return f"{self.k}/{self.n}, {self.tokens} tokens"

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        return {"": self.k / self.n, " k": self.k, " n": self.n, " tokens": self.tokens}


@dataclass(frozen=True)
class RateGap:
    """A paired difference of two rates, and the pairs that make it: those in which only one of the two held."""

    gap: RateDifference

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        gap = self.gap
        if gap.difference is None:
            return NOTHING
        shown, low, high = (_shown(rate, 1, percent=True) for rate in (gap.difference, gap.low, gap.high))
        return f"{shown} [{low}, {high}], {gap.gained} gained, {gap.lost} lost"

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        gap = self.gap
        return {"": gap.difference, " low": gap.low, " high": gap.high, " gained": gap.gained, " lost": gap.lost}


@dataclass(frozen=True)
class Spent:
    """What was spent by what was solved, with both of them; a number that is unknown is a word, never 0."""

    per_solved: PerSolved
    digits: int = 0

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        per_solved = self.per_solved
        if not per_solved.trials:
            return NOTHING
        if per_solved.spent is None:
            return UNKNOWN
        spent = _shown(per_solved.spent, self.digits)
        if per_solved.value is None:
            return f"{NONE_SOLVED} ({spent} in {per_solved.trials} trials)"
        interval = _interval(per_solved.value, per_solved.low, per_solved.high, self.digits) or f"(interval {NOTHING})"
        return f"{spent}/{per_solved.solved} = {_shown(per_solved.value, self.digits)} {interval}"

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        per_solved = self.per_solved
        value = UNKNOWN if per_solved.spent is None else NONE_SOLVED if per_solved.value is None else per_solved.value
        return {"": value, " low": per_solved.low, " high": per_solved.high, " spent": per_solved.spent}


@dataclass(frozen=True)
class PublishedNumber:
    """What somebody else published: a mean, and an sd where one was given."""

    mean: float | None
    sd: float | None = None
    digits: int = 0
    percent: bool = False

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        if self.mean is None:
            return "–"
        value = _shown(self.mean, self.digits, self.percent)
        return value if self.sd is None else f"{value} ± {_shown(self.sd, self.digits, self.percent)}"

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        return {"": self.mean, " sd": self.sd}


@dataclass(frozen=True)
class Linked:
    """A text that leads to a file on a page; to none where `to` is ""."""

    shown: str
    to: str

    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """
        return self.shown

    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            What is put behind the column's title ("" for the value itself) -> a number; None where it does not exist.
        """
        return {"": self.shown}


Cell = str | int | Number | BoundedNumber | AdjustedP | Estimate | Rate | SolvedOf | RateGap | Spent | PublishedNumber | Linked


CIRCUMSTANCES = ("Scenario", "Pack", "Model", "Fault plan")
"""Columns that say where a row's numbers were measured."""


@dataclass(frozen=True)
class Table:
    """A table of a report: each row has as many cells as there are columns.

    name      that of its files
    title     what stands above it
    columns   their titles, each with its unit
    rows      cells: texts, whole numbers, or the types above, which know how they are shown
    notes     stand below it
    section   where it stands in a report (`bench.report.table_part.SECTIONS`)
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

    def shortened(self, least: int = 2) -> Table:
        """Return the table with the circumstances that all of its rows share in its title and not in each row.

        Args:
            least: Rows that a table has at least that is shortened.

        Returns:
            A new table; this one where nothing is shared.
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
    """A column of a table whose rows are all made alike.

    title   what stands above it
    cell    (what a row is made of) -> the cell
    """

    title: str
    cell: Callable[[Item], Cell]

    def of(self, read: Callable[[Whole], Item]) -> TableColumn[Whole]:
        """Return the column for rows that are made of something that the item is a part of.

        Args:
            read: (what a row is made of) -> the item.

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
        title: What stands above it.
        columns: The columns.
        items: What the rows are made of.
        notes: What stands below it.

    Returns:
        The table.
    """
    rows = tuple(tuple(column.cell(item) for column in columns) for item in items)
    return Table(name, title, tuple(column.title for column in columns), rows, tuple(notes))


def text_of(cell: Cell) -> str:
    """Return a cell as people read it.

    Args:
        cell: The cell.

    Returns:
        One line.
    """
    return str(cell) if isinstance(cell, str | int) else cell.text()


def _interval(value: float, low: float | None, high: float | None, digits: int, percent: bool = False) -> str:
    """An interval as text; "" where there is none."""
    if low is None or high is None:
        return ""
    if not percent and low >= 0 and high > TOO_WIDE * value > 0:
        return TOO_FEW
    return f"[{_shown(low, digits, percent)}, {_shown(high, digits, percent)}]"


def _shown(value: float | None, digits: int, percent: bool = False) -> str:
    if value is None:
        return NOTHING
    shown = f"{100 * value:.{digits}f}%" if percent else f"{value:.{digits}f}"
    return shown.removeprefix("-") if not re.search("[1-9]", shown) else shown


# Markdown


def markdown(table: Table) -> str:
    """Return a table as Markdown, shortened.

    Args:
        table: The table.

    Returns:
        A heading, the table and its notes.
    """
    table = table.shortened()
    lines = [f"### {escape_markdown(table.title)}", ""]
    lines.append("| " + " | ".join(map(escape_markdown, table.columns)) + " |")
    lines.append("|" + "|".join(" --- " for _ in table.columns) + "|")
    lines += ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in table.texts()]
    lines += ["", *(f"- {escape_markdown(note)}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


# CSV


def comma_separated(table: Table) -> str:
    """Return a table as CSV, with all its columns.

    Args:
        table: The table.

    Returns:
        The text. A column with numbers becomes one for each kind of number in it; a missing number is an empty field.
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
