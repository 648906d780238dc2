"""The registry of commands."""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.registry import Part, Registry


@dataclass(frozen=True)
class CommandPart(Part):
    """A command, or a command of a group if the name is `GROUP NAME`.

    path   the command's function, whose arguments and help typer reads, or a typer app; a group has none. Its module must
    not import pandas
    help   the first line of the command's help, so that `bench --help` need not import the command
    """

    path: str = ""
    help: str = ""


COMMANDS = Registry("command", CommandPart)
