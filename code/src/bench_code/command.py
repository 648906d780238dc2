"""The command `bench code` without the rest of `bench`. It needs typer alone, so it can be installed beside any project."""

from __future__ import annotations

import typer

from bench.cli.command import add_command, run_command
from bench_code.cli import app as code

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)


@app.callback()
def bench() -> None:
    """Show what a patch of code invalidates."""


add_command(app, "code", code)


def main() -> None:
    """Run the command. A user's mistake is one line on standard error and exit code 2."""
    run_command(app, lambda: None)
