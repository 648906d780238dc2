"""The terminal that a command prints to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from bench.cli.unread import exit_unread
from bench.common.escaping import escape_terminal

if TYPE_CHECKING:
    from bench.common.registry import Registry

PIPE_TABLE_WIDTH = 1000
"""The width of a table in a pipe or a file, in characters, so that each row is one line."""
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
        self.of_width(width).print(table)

    def of_width(self, width: int, wrapped: bool = False) -> Terminal:
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
