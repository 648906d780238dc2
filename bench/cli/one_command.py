"""The command `bench` with the one command that was typed, so that no other command's module is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from bench.cli.command import app_of, group_of, run_command
from bench.cli.command_part import COMMANDS, CommandPart


def command_runner(words: Sequence[str]) -> Callable[[], None] | None:
    """Return a function that runs a built-in command. Return None if the words name no built-in command."""
    part = _find_command(words)
    if part is None or part.package:
        return None
    return partial(run_command, app_of((part.name, part.load(part.path))), _print_left_out)


def help_runner(words: Sequence[str]) -> Callable[[], None] | None:
    """Return a function that shows the help of `bench` or of a group, the version, or the commands nearest to a misspelled
    name. These need the commands' names and help lines only, so no command is imported.

    Return None if the words name a command, or if a command of another package has no help line.
    """
    if _find_command(words) or not all(part.help for part in COMMANDS):
        return None
    named_commands = ((part.name, _command_with_help(part.help) if part.path else group_of(part.help)) for part in COMMANDS)
    return partial(run_command, app_of(*named_commands), _print_left_out)


def _find_command(words: Sequence[str]) -> CommandPart | None:
    """Return the command that the first two words or the first word name."""
    for count in (2, 1):
        if (part := COMMANDS.by_key.get(" ".join(words[:count]))) and part.path:
            return part
    return None


def _command_with_help(text: str) -> Callable[[], None]:
    """Return a command that does nothing and has this help text."""

    def command() -> None: ...

    command.__doc__ = text
    return command


def _print_left_out() -> None:
    """Print a line for each command of another package that could not be loaded."""
    if not COMMANDS.left_out:
        return
    from bench.cli.terminal import Terminal, print_left_out  # noqa: PLC0415  it imports rich

    print_left_out(Terminal(stderr=True), COMMANDS)
