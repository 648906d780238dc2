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

from bench.cli.unread import end_unread
from bench.common.escaping import escape_terminal

# It imports pandas; a command that shows no results should not wait for that.
if TYPE_CHECKING:
    from bench.common.registry import Registry
    from bench.read.render import table

LONGEST_LINE = 1000
WIDEST = 160
"""Characters of a report's table in a pipe or a file, unless COLUMNS says how wide it is."""
SELDOM = 60.0
"""The least seconds between two lines on how far some work is, in a pipe or a file."""


class Terminal(Console):
    """Prints texts literally, in lines of any length, or `wrapped` between words. No text acts as markup or controls the
    terminal."""

    def __init__(self, stderr: bool = False, wrapped: bool = False):
        super().__init__(stderr=stderr, highlight=False, soft_wrap=not wrapped, markup=False, emoji=False)

    def show(self, table: Table) -> None:
        """Print a table. If the terminal is narrower than its longest words, lines are longer than the terminal. A pipe or a
        file gets each row in one line."""
        least = Measurement.get(self, self.options.update(max_width=LONGEST_LINE), table).minimum
        needed = least + len(table.columns)  # rich does not count the space after each column
        wide = max(needed, self.width) if self.is_terminal else LONGEST_LINE
        self._of_width(wide).print(table)

    def show_report_table(self, shown: table.Table) -> None:
        """Print a report's table. In a pipe or a file it is as wide as its cells are, up to WIDEST. If a word would be broken,
        rows that agree in the first columns stand together, below what they agree in; else each row is a block with a line for
        each column."""
        if not self.is_terminal and not os.environ.get("COLUMNS") and self.width < WIDEST:
            self._of_width(WIDEST, wrapped=True).show_report_table(shown)
            return
        short = shown.shortened(1)
        rows = list(short.texts())
        self.print(short.title, style="bold")
        for agreeing in range(len(short.columns)):
            groups = [(cells, list(group)) for cells, group in groupby(rows, itemgetter(slice(agreeing)))]
            if agreeing and 2 * len(groups) > len(rows):
                break
            drawn = self._draw(short.columns, groups)
            with self.capture() as captured:
                self.print(drawn)
            rendered = captured.get()
            if all(word in rendered for text in (*short.columns, *chain(*rows)) for word in text.split()):
                self.print(drawn)
                return
        for row in rows:
            block = Table(box=None, show_header=False, pad_edge=False)
            for pair in zip(short.columns, row, strict=True):
                block.add_row(*pair)
            self.print()
            self.print(block)

    def _draw(self, columns: Sequence[str], groups: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> Group:
        """Return a table of each group of rows, below the cells in which its rows agree. All have columns of the same width."""
        parts: list[str | Table] = []
        agreeing = len(groups[0][0]) if groups else 0
        cells = zip(*(row[agreeing:] for row in (columns, *chain(*(rows for _, rows in groups)))), strict=True)
        widths = [max(map(cell_len, column)) for column in cells]
        fits = sum(widths) + 3 * len(widths) < self.width
        for agreed, rows in groups:
            parts += [", ".join(map(": ".join, zip(columns, agreed, strict=False)))] if agreed else []
            drawn = Table()
            for title, width in zip(columns[agreeing:], widths, strict=True):
                drawn.add_column(title, overflow="fold", min_width=width if fits else None)
            for row in rows:
                drawn.add_row(*row[agreeing:])
            parts.append(drawn)
        return Group(*parts)

    def _of_width(self, width: int, wrapped: bool = False) -> Terminal:
        """Return a terminal of this width that prints to the same place."""
        other = Terminal(wrapped=wrapped)
        other.file, other.width = self.file, width
        return other

    def on_broken_pipe(self) -> NoReturn:
        """End the command, since nobody reads what it prints. `rich` would exit with 1, which can be a verdict."""
        end_unread()

    @contextmanager
    def showing_progress(self) -> Iterator[Callable[[str], None]]:
        """Give a function that shows how far some work is: in a terminal in a line that goes away, else in a line a minute."""
        shown = perf_counter()

        def show(text: str) -> None:
            nonlocal shown
            status.update(text)
            if not self.is_terminal and perf_counter() - shown >= SELDOM:
                shown = perf_counter()
                self.print(text)

        with self.status("") as status:
            yield show

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape a text. Every printed text, alone or in a table, passes through here."""
        return super().render_str(escape_terminal(text), **options)


def tell_left_out(err: Terminal, *kinds: Registry[Any]) -> None:
    """Print which parts of other packages are missing, a line each."""
    for line in dict.fromkeys(line for kind in kinds for line in kind.left_out):
        err.print(f"bench: {line}")
