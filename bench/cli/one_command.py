"""The command `bench` with the one command that was typed, so that no other command's module is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from bench.cli.command import app_of, group_of, run_command
from bench.cli.command_part import COMMANDS, CommandPart


def main_of(words: Sequence[str]) -> Callable[[], None] | None:
    """Return what runs a command of ours; None for any other words."""
    part = _named_by(words)
    if part is None or part.package:
        return None
    return partial(run_command, app_of((part.name, part.load(part.path))), _tell_left_out)


def main_of_names(words: Sequence[str]) -> Callable[[], None] | None:
    """Return what shows the help of `bench` or of a group, the version, or which commands a wrong word is near to: for that,
    names and first lines suffice, and no command is imported. None if the words name a command, or if another package's command
    has no line."""
    if _named_by(words) or not all(part.help for part in COMMANDS):
        return None
    named = ((part.name, _describe(part.help) if part.path else group_of(part.help)) for part in COMMANDS)
    return partial(run_command, app_of(*named), _tell_left_out)


def _named_by(words: Sequence[str]) -> CommandPart | None:
    for count in (2, 1):
        if (part := COMMANDS.by_key.get(" ".join(words[:count]))) and part.path:
            return part
    return None


def _describe(text: str) -> Callable[[], None]:
    def command() -> None: ...

    command.__doc__ = text
    return command


def _tell_left_out() -> None:
    if not COMMANDS.left_out:
        return
    from bench.cli.terminal import Terminal, tell_left_out  # noqa: PLC0415  it imports rich

    tell_left_out(Terminal(stderr=True), COMMANDS)
