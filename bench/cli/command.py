"""A command and the group of all commands: how `bench` shows them and reads what was typed."""

from __future__ import annotations

from typing import Any, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError
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
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
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
