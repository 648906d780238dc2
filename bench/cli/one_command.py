"""The command `bench` with the one command that was typed, so that no other command's module is imported."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import typer

from bench.cli.command import Commands, add_command, run_command
from bench.cli.command_part import COMMANDS
from bench.cli.terminal import Terminal


def main_of(name: str) -> Callable[[], None] | None:
    """Return what runs a command of ours that has a module of its own; None for any other word."""
    part = COMMANDS.by_key.get(name)
    if part is None or part.package or part.path.startswith("bench.cli.main:"):
        return None
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_bench)
    add_command(app, part.name, part.load(part.path))
    return partial(run_command, app, _tell_left_out)


def _bench() -> None:
    """Measure what a failure costs an LLM-agent architecture."""


def _tell_left_out() -> None:
    from bench.cli.listing import tell_left_out  # noqa: PLC0415  it imports all kinds of parts

    tell_left_out(Terminal(stderr=True), COMMANDS)
