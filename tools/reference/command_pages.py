"""Every command with its arguments and options, as Markdown, from the command-line program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from bench.cli.main import app

PROGRAM = "bench"
ESCAPED_BAR = r"\|"
"""A bar that is part of a cell, and does not end it."""


def page() -> str:
    """Return a section for each command, in the order in which `bench --help` lists them."""
    return "\n\n".join(_section(name, command) for name, command in commands())


def commands() -> list[tuple[str, Any]]:
    """Return (full name, command) of every command. A group is left out, and its own commands come in its place."""
    return list(_in_group(PROGRAM, typer.main.get_command(app)))


def _in_group(name: str, group: Any) -> Iterator[tuple[str, Any]]:
    for inner, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _in_group(f"{name} {inner}", command)
        else:
            yield f"{name} {inner}", command


def _section(name: str, command: Any) -> str:
    context = command.context_class(command, info_name=name)
    usage = " ".join((name, *command.collect_usage_pieces(context)))
    rows = [_row(*record) for parameter in command.get_params(context) if (record := parameter.get_help_record(context))]
    head = "| argument or option | what it means |\n| --- | --- |"
    return "\n\n".join((f"## `{name}`", command.help, f"```text\n{usage}\n```", "\n".join((head, *rows))))


def _row(names: str, means: str) -> str:
    """Return the row of an argument or option. typer puts a star before the names of a required option."""
    cells = f"`{names.strip().removeprefix('*').strip()}`", " ".join(means.split())
    return f"| {' | '.join(cell.replace('|', ESCAPED_BAR) for cell in cells)} |"
