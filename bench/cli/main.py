"""The command `bench` with all its commands."""

from __future__ import annotations

import typer

from bench.cli.command import add_command, app_of, group_of, run_command
from bench.cli.command_part import COMMANDS
from bench.cli.terminal import Terminal, print_left_out
from bench.common.registry import Unusable, foreign_code

app = app_of()


def add_commands(target: typer.Typer) -> None:
    """Add all commands to an app, built-in commands first. A command of another package that cannot be imported is left out."""
    for part in COMMANDS:
        try:
            if part.package:
                with foreign_code(part.home):
                    add_command(test_app := typer.Typer(), part.name, part.load(part.path))
                    typer.main.get_command(test_app)  # typer reads a function's arguments here, for all commands together
            add_command(target, part.name, part.load(part.path) if part.path else group_of(part.help))
        except Unusable as error:
            COMMANDS.leave_out(part, str(error))


add_commands(app)


def main() -> None:
    """Run the command. A mistake of the user prints one line on standard error and exits with code 2."""
    run_command(app, lambda: print_left_out(Terminal(stderr=True), COMMANDS))
