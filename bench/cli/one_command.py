"""The command `bench` with the one command that was typed, so that no other command's module is imported."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench.cli.command import app_of, run_command
from bench.cli.command_part import COMMANDS


def main_of(name: str) -> Callable[[], None] | None:
    """Return what runs a command of ours that has a module of its own; None for any other word."""
    part = COMMANDS.by_key.get(name)
    if part is None or part.package or part.path.startswith("bench.cli.main:"):
        return None
    return partial(run_command, app_of((part.name, part.load(part.path))), _tell_left_out)


def main_of_names(name: str) -> Callable[[], None] | None:
    """Return what shows the help of `bench`, its version, or which commands a wrong word is near to: for that, names and first
    lines suffice, and no command is imported. None if the word is a command, or if another package's command has no line."""
    if name in COMMANDS or not all(part.help for part in COMMANDS):
        return None
    return partial(run_command, app_of(*((part.name, _described(part.help)) for part in COMMANDS)), _tell_left_out)


def _described(text: str) -> Callable[[], None]:
    def command() -> None: ...

    command.__doc__ = text
    return command


def _tell_left_out() -> None:
    if not COMMANDS.left_out:
        return
    from bench.cli.listing import tell_left_out  # noqa: PLC0415  it imports all kinds of parts
    from bench.cli.terminal import Terminal  # noqa: PLC0415  it imports rich

    tell_left_out(Terminal(stderr=True), COMMANDS)
