"""The terminal that a command prints to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

from rich.cells import cell_len
from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from bench.cli.unread import exit_unread
from bench.common.escaping import escape_terminal

# It imports pandas; a command that shows no results should not wait for that.
if TYPE_CHECKING:
    from bench.common.registry import Registry
    from bench.read.render import table

PIPE_TABLE_WIDTH = 1000
"""The width of a table in a pipe or a file, in characters, so that each row is one line."""
REPORT_TABLE_WIDTH = 160
"""The most characters of a line of a report's table in a pipe or a file, unless COLUMNS gives the width."""
PROGRESS_INTERVAL_S = 60.0
"""The least seconds between two lines of progress in a pipe or a file."""


class Terminal(Console):
    """A console that prints texts literally, in lines of any length, or wrapped between words if `wrapped`. No printed text
    acts as markup or controls the terminal."""

    def __init__(self, stderr: bool = False, wrapped: bool = False):
        super().__init__(stderr=stderr, highlight=False, soft_wrap=not wrapped, markup=False, emoji=False)
        if not self.width:  # with COLUMNS=0 no text would be printed
            self.width = 80

    def show(self, table: Table) -> None:
        """Print a table. On a terminal that is narrower than the longest words, the lines are longer than the terminal is
        wide. In a pipe or a file each row is one line."""
        minimum_width = Measurement.get(self, self.options.update(max_width=PIPE_TABLE_WIDTH), table).minimum
        needed_width = minimum_width + len(table.columns)  # rich does not count the space after each column
        width = max(needed_width, self.width) if self.is_terminal else PIPE_TABLE_WIDTH
        self._of_width(width).print(table)

    def show_report_table(self, report_table: table.Table) -> None:
        """Print a table of a report. In a pipe or a file the table is as wide as its cells, up to REPORT_TABLE_WIDTH.

        If the width would break a word, rows with equal first cells are grouped below these cells. If a word would still
        break, each row becomes a block with one line for each column.
        """
        if not self.is_terminal and not os.environ.get("COLUMNS") and self.width < REPORT_TABLE_WIDTH:
            self._of_width(REPORT_TABLE_WIDTH, wrapped=True).show_report_table(report_table)
            return
        shortened = report_table.shortened(1)
        rows = list(shortened.texts())
        self.print(shortened.title, style="bold")
        for shared_columns in range(len(shortened.columns)):
            groups = [(cells, list(group)) for cells, group in groupby(rows, itemgetter(slice(shared_columns)))]
            if shared_columns and 2 * len(groups) > len(rows):
                break
            rendered_table = self._draw(shortened.columns, groups)
            with self.capture() as captured:
                self.print(rendered_table)
            rendered = captured.get()
            if all(word in rendered for text in (*shortened.columns, *chain(*rows)) for word in text.split()):
                self.print(rendered_table)
                return
        for row in rows:
            block = Table(box=None, show_header=False, pad_edge=False)
            for pair in zip(shortened.columns, row, strict=True):
                block.add_row(*pair)
            self.print()
            self.print(block)

    def _draw(self, columns: Sequence[str], groups: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> Group:
        """Return a table for each group of rows, below the cells that all rows of the group share. All tables have columns
        of the same width."""
        parts: list[str | Table] = []
        shared_columns = len(groups[0][0]) if groups else 0
        cells = zip(*(row[shared_columns:] for row in (columns, *chain(*(rows for _, rows in groups)))), strict=True)
        widths = [max(map(cell_len, column)) for column in cells]
        fits = sum(widths) + 3 * len(widths) < self.width
        for shared_cells, rows in groups:
            parts += [", ".join(map(": ".join, zip(columns, shared_cells, strict=False)))] if shared_cells else []
            table = Table()
            for title, width in zip(columns[shared_columns:], widths, strict=True):
                table.add_column(title, overflow="fold", min_width=width if fits else None)
            for row in rows:
                table.add_row(*row[shared_columns:])
            parts.append(table)
        return Group(*parts)

    def _of_width(self, width: int, wrapped: bool = False) -> Terminal:
        """Return a terminal of this width that prints to the same file."""
        terminal = Terminal(wrapped=wrapped)
        terminal.file, terminal.width = self.file, width
        return terminal

    def on_broken_pipe(self) -> NoReturn:
        """Exit the command after its reader closed the pipe. The default of `rich` is exit code 1, which can be a verdict."""
        exit_unread()

    @contextmanager
    def showing_progress(self) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows the progress of a task: on a terminal in one line that disappears, else in at most one
        line a minute."""
        shown_at = perf_counter()

        def show(text: str) -> None:
            nonlocal shown_at
            status.update(text)
            if not self.is_terminal and perf_counter() - shown_at >= PROGRESS_INTERVAL_S:
                shown_at = perf_counter()
                self.print(text)

        with self.status("") as status:
            yield show

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape a text. Every printed text, alone or in a table, passes through this method."""
        return super().render_str(escape_terminal(text), **options)


def print_left_out(err: Terminal, *registries: Registry[Any]) -> None:
    """Print a line for each part of another package that could not be loaded."""
    for line in dict.fromkeys(line for registry in registries for line in registry.left_out):
        err.print(f"bench: {line}")
