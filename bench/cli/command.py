"""A command and the group of all commands: how `bench` shows them and reads what was typed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from bench.cli.loopback import spare_loopback
from bench.cli.terminal import Terminal
from bench.common.errors import BenchError, ConfigError
from bench.common.signals import AsCtrlC, exit_code

FIRST = ("probe", "run", "report", "compare", "trace", "scorecard", "new", "check")
"""The commands that help lists first, in the order in which people need them; all others stand under "More"."""
WORDS = {
    "<str>": "NAME",
    "<list[str]>": "NAME",
    "<path>": "PATH",
    "<list[Path]>": "PATH",
    "<int>": "N",
    "<int range>": "N",
    "<float range>": "NUMBER",
}
"""What help pages call a value, instead of its Python type."""
UsageMistake: type[Exception] = typer.BadParameter.__mro__[1]
"""The class that typer raises for wrong arguments; typer exports no name for it."""


class SuggestingCommand(TyperCommand):
    """A command that refuses a repeated option that takes one value. Ctrl-C, SIGTERM and SIGHUP end it with one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.metavar is None and not parameter.is_flag:
                shown = str(parameter.display_type(cast(Any, None)))
                parameter.metavar = WORDS.get(shown, shown.strip("<>"))
            elif isinstance(parameter, TyperArgument):  # its name says enough
                vars(parameter)["display_type"] = lambda _: None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise ConfigError if an option is repeated that takes one value."""
        try:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        except UsageMistake as mistake:
            cast(Any, mistake).ctx = ctx  # typer leaves it out where an option lacks its value
            raise
        for option in given:
            single = isinstance(option, TyperOption) and not (option.multiple or option.is_flag)
            if single and given.count(option) > 1:
                raise ConfigError(f"{option.opts[0]} is given {given.count(option)} times; give it once")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with AsCtrlC() as stop:
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                Terminal(stderr=True).print(f"{ctx.command_path}: stopped; no file is half written")
                raise typer.Exit(exit_code(stop.by)) from None


class Commands(TyperGroup):
    """Lists the commands that people need first, then all others."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  as typer calls it
        more = tuple(name for name in self.commands if name not in FIRST)
        width = max(map(len, self.commands))
        for title, names in (("First", FIRST), ("More", more)):
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(formatter.width - width - 6))
                for name in names
                if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def add_command(to: typer.Typer, name: str, command: Any) -> None:
    """Add a command, or a group of commands, that refuses a repeated option."""
    if isinstance(command, typer.Typer):
        to.add_typer(command, name=name)
        added = command.registered_commands
    else:
        to.command(name)(command)
        added = to.registered_commands[-1:]
    for each in added:
        each.cls = SuggestingCommand


def run_command(app: typer.Typer, after_mistake: Callable[[], None]) -> None:
    """Run the command. A user's mistake is one line on standard error and exit code 2."""
    err = Terminal(stderr=True)
    spare_loopback()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error does with what it cannot encode
    try:
        code = app(prog_name="bench", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except UsageMistake as error:
        _tell(err, error)
        after_mistake()
        sys.exit(2)
    except BenchError as error:
        err.print(f"bench: {' '.join(str(error).split())}")
        sys.exit(2)
    except OSError as error:
        err.print(f"bench: {error.filename or 'a file cannot be written'}: {error.strerror or error}")
        sys.exit(2)


def _tell(err: Terminal, mistake: Any) -> None:
    """Print what was typed wrong, in one line. Without a command, list the commands."""
    words = mistake.format_message()
    if "\n" in words:
        Terminal().print(words)
        return
    words = words.replace(". Did you mean", "; did you mean").rstrip(".?")
    command = mistake.ctx.command_path if mistake.ctx else "bench"  # the parser of options knows no command
    err.print(f"bench: {words[0].lower()}{words[1:]}; see: {command} --help")
