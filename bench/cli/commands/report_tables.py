"""The tables of a report, printed in a terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table

from bench.cli.terminal import Terminal

# It imports pandas; a command that shows no results should not wait for that.
if TYPE_CHECKING:
    from bench.read.render.table import Table as ReportTable

REPORT_TABLE_WIDTH = 160
"""The most characters of a line of a report's table in a pipe or a file, unless COLUMNS gives the width."""


def show_report_table(terminal: Terminal, report_table: ReportTable) -> None:
    """Print a table of a report. In a pipe or a file the table is as wide as its cells, up to REPORT_TABLE_WIDTH.

    If the width would break a word, rows with equal first cells are grouped below these cells. If a word would still
    break, each row becomes a block with one line for each column.
    """
    if not terminal.is_terminal and not os.environ.get("COLUMNS") and terminal.width < REPORT_TABLE_WIDTH:
        show_report_table(terminal.of_width(REPORT_TABLE_WIDTH, wrapped=True), report_table)
        return
    shortened = report_table.shortened(1)
    rows = list(shortened.texts())
    terminal.print(shortened.title, style="bold")
    for shared_columns in range(len(shortened.columns)):
        groups = [(cells, list(group)) for cells, group in groupby(rows, itemgetter(slice(shared_columns)))]
        if shared_columns and 2 * len(groups) > len(rows):
            break
        rendered_table = _draw(terminal, shortened.columns, groups)
        with terminal.capture() as captured:
            terminal.print(rendered_table)
        rendered = captured.get()
        if all(word in rendered for text in (*shortened.columns, *chain(*rows)) for word in text.split()):
            terminal.print(rendered_table)
            return
    for row in rows:
        block = Table(box=None, show_header=False, pad_edge=False)
        for pair in zip(shortened.columns, row, strict=True):
            block.add_row(*pair)
        terminal.print()
        terminal.print(block)


def _draw(terminal: Terminal, columns: Sequence[str], groups: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> Group:
    """Return a table for each group of rows, below the cells that all rows of the group share. All tables have columns
    of the same width."""
    parts: list[str | Table] = []
    shared_columns = len(groups[0][0]) if groups else 0
    cells = zip(*(row[shared_columns:] for row in (columns, *chain(*(rows for _, rows in groups)))), strict=True)
    widths = [max(map(cell_len, column)) for column in cells]
    fits = sum(widths) + 3 * len(widths) < terminal.width
    for shared_cells, rows in groups:
        parts += [", ".join(map(": ".join, zip(columns, shared_cells, strict=False)))] if shared_cells else []
        table = Table()
        for title, width in zip(columns[shared_columns:], widths, strict=True):
            table.add_column(title, overflow="fold", min_width=width if fits else None)
        for row in rows:
            table.add_row(*row[shared_columns:])
        parts.append(table)
    return Group(*parts)
