"""A command and the group of all commands: how `bench` shows them and reads what was typed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from bench.cli.unread import exit_unread, is_output_closed
from bench.common.errors import BenchError, ConfigError, nearest, one_line
from bench.common.escaping import escape_terminal
from bench.common.signals import AsCtrlC, exit_code

FIRST_COMMANDS = ("probe", "run", "report", "compare", "trace", "scorecard", "new", "check")
"""The commands that help lists first, in the order in which people need them; all others stand under "More"."""
TYPE_NAMES = {
    "<str>": "NAME",
    "<list[str]>": "NAME",
    "<path>": "PATH",
    "<list[Path]>": "PATH",
    "<int>": "N",
    "<int range>": "N",
    "<float range>": "NUMBER",
}
"""typer's name of a Python type -> the name of such a value in help pages."""
COMMAND_METAVAR = "-- COMMAND"
"""The metavar of an argument that takes the words of the user's command."""
PacksOption = Annotated[list[Path], typer.Option("--scenarios", help="A folder of packs; may be given more than once.")]
UnguardedOption = Annotated[
    bool,
    typer.Option(
        "--unguarded", help="Run models' code even if a guard of the sandbox is missing (see bench doctor); the run records it."
    ),
]
UsageMistake: type[Exception] = typer.BadParameter.__mro__[1]
"""The class that typer raises for wrong arguments; typer exports no name for it."""


class SuggestingCommand(TyperCommand):
    """A command of `bench`. It rejects an empty value, and a repeated option if the option takes one value. Ctrl-C, SIGTERM and
    SIGHUP end the command with one line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make the command. Its help names the type of each option by a word, and the type of no argument."""
        super().__init__(*args, **kwargs)
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.metavar is None and not parameter.is_flag:
                shown = str(parameter.display_type(cast(Any, None)))
                parameter.metavar = TYPE_NAMES.get(shown, shown.strip("<>"))
            elif isinstance(parameter, TyperArgument):  # its name says enough
                vars(parameter)["display_type"] = lambda _: None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. The words after `--` are the words of the user's command, if this command takes one.

        Raises:
            ConfigError: an option that takes one value is repeated, a value is empty, or the user's command is not behind `--`.
        """
        user_command = next((parameter.name for parameter in self.params if parameter.metavar == COMMAND_METAVAR), None)
        if user_command and "--" in args:
            separator = args.index("--")
            rest = self.parse_args(ctx, args[:separator])
            ctx.params[user_command] = args[separator + 1 :]
            return rest
        try:
            values, _, options = self.make_parser(ctx).parse_args(args=list(args))
        except UsageMistake as mistake:
            cast(Any, mistake).ctx = ctx  # typer leaves it out where an option lacks its value
            raise
        for option in options:
            takes_one_value = isinstance(option, TyperOption) and not (option.multiple or option.is_flag)
            if takes_one_value and options.count(option) > 1:
                raise ConfigError(f"{option.opts[0]} is given {options.count(option)} times; give it once")
        for parameter in self.params:
            if any(not word.strip() for word in _typed_words(values.get(parameter.name or ""))):
                name = (
                    parameter.opts[0]
                    if isinstance(parameter, TyperOption)
                    else (parameter.metavar or str(parameter.name).upper()).strip("[]. ")
                )
                advice = "give a value" if parameter.required else "give a value, or leave it out"
                raise ConfigError(f"{name} is empty; {advice}")
        rest = super().parse_args(ctx, args)
        if user_command and (words := ctx.params[user_command]):
            raise ConfigError(f"'{words[0]}': a command is typed behind `--`, as in: {ctx.command_path} -- python agent.py")
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command. If a signal stops it, print one line and exit with the signal's code."""
        from bench.cli.loopback import exempt_loopback  # noqa: PLC0415  help sends no request

        exempt_loopback()
        with AsCtrlC() as stop:
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                _print_line(f"{ctx.command_path}: stopped; no file is half written")
                raise typer.Exit(exit_code(stop.by)) from None
            except BrokenPipeError:
                if is_output_closed():
                    exit_unread()
                raise BenchError("a process or a server that it wrote to has gone (Broken pipe)") from None


def _typed_words(value: object) -> list[str]:
    """Return the words that were typed as a value, which may be one word, several, or none."""
    if isinstance(value, list | tuple):
        return [word for inner in value for word in _typed_words(inner)]
    return [value] if isinstance(value, str) else []


class CommandGroup(TyperGroup):
    """A group of commands that answers an unknown name with the nearest name, and the name of a command in a subgroup with
    its full path."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, as typer does. An unknown name ends the program with advice."""
        typed = args[0]
        if typed not in self.commands and not typed.startswith("-"):
            names = list(self.commands)
            for name, command in self.commands.items():
                names += [f"{name} {inner}" for inner in getattr(command, "commands", ())]
            path_in_group = next((name for name in names if name.endswith(f" {typed}")), None)
            advice = f"it is: {ctx.command_path} {path_in_group}" if path_in_group else nearest(typed, names)
            ctx.fail(f"no such command '{one_line(typed, 60)}'; {advice}")
        return super().resolve_command(ctx, args)


class Commands(CommandGroup):
    """The group of all commands. Its help lists the most needed commands first, then the others."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  as typer calls it
        other_names = tuple(name for name in self.commands if name not in FIRST_COMMANDS)
        width = max(map(len, self.commands))
        for title, names in (("First", FIRST_COMMANDS), ("More", other_names)):
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(formatter.width - width - 6))
                for name in names
                if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def group_of(help_: str | None = None) -> typer.Typer:
    """Return a new, empty group of commands."""
    return typer.Typer(cls=CommandGroup, help=help_, no_args_is_help=True, rich_markup_mode=None)


def add_command(app: typer.Typer, name: str, command: Any) -> None:
    """Add a command or a group of commands to an app. A name `GROUP NAME` adds the command to the group. Each added command
    rejects a repeated option."""
    group, _, name = name.rpartition(" ")
    if group:
        subgroup = next((info.typer_instance for info in app.registered_groups if info.name == group), None)
        if subgroup is None:
            app.add_typer(subgroup := group_of(), name=group)
        app = subgroup
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
        new_commands = command.registered_commands
    else:
        app.command(name)(command)
        new_commands = app.registered_commands[-1:]
    for new_command in new_commands:
        new_command.cls = SuggestingCommand


def show_version(given: bool) -> None:
    """Print the version and exit, if the option was given."""
    if given:
        print(f"recovery-bench {version('recovery-bench')}")
        raise typer.Exit


def bench(
    _version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find out what your agent damages when a call fails, and what a failure costs an LLM-agent architecture.

    Your own agent: `bench probe -- python agent.py`. A run begins with `bench run configs/smoke.toml --report`, needs no key,
    and takes seconds.
    """


def app_of(*commands: tuple[str, Any]) -> typer.Typer:
    """Return the app `bench` with these commands."""
    app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(bench)
    for name, command in commands:
        add_command(app, name, command)
    return app


def run_command(app: typer.Typer, after_mistake: Callable[[], None]) -> None:
    """Run the app. A mistake of the user prints one line on standard error and exits with code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error does with what it cannot encode
    try:
        code = app(prog_name="bench", standalone_mode=False)
        print(end="", flush=True)  # it fails on a full disk; a closed standard output is None, which only print takes
    except SystemExit:  # typer raises it too, if nobody read what it printed
        if is_output_closed():
            exit_unread()
        raise
    except UsageMistake as error:
        _print_mistake(error)
        after_mistake()
        sys.exit(2)
    except BenchError as error:
        _print_line(f"bench: {' '.join(str(error).split())}")
        sys.exit(2)
    except OSError as error:
        if is_output_closed():
            exit_unread()
        _print_line(f"bench: {error.filename or 'a file cannot be written'}: {error.strerror or error}")
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _print_line(line: str, stderr: bool = True) -> None:
    """Print a line as `Terminal` does, but without importing rich, which takes as long as all other work on a misspelled
    command."""
    try:
        print(escape_terminal(line), file=sys.stderr if stderr else sys.stdout, flush=True)
    except BrokenPipeError:
        exit_unread()


def _print_mistake(mistake: Any) -> None:
    """Print the mistake of the user in one line. If no command was given, print the list of commands."""
    from pydantic import ValidationError  # noqa: PLC0415  typer has imported pydantic by now

    if isinstance(mistake.__cause__, ValidationError):  # typer's words are those of pydantic, and name no value
        from bench.common.wording import first_violation  # noqa: PLC0415

        mistake.message = first_violation(mistake.__cause__).words
    words = mistake.format_message()
    if "\n" in words:
        _print_line(words, stderr=False)
        return
    words = words.replace(". Did you mean", "; did you mean").rstrip(".?")
    command = mistake.ctx.command_path if mistake.ctx else "bench"  # the parser of options knows no command
    _print_line(f"bench: {words[0].lower()}{words[1:]}; see: {command} --help")
