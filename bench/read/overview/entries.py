"""The entries of `bench runs`, `bench verify` and `bench watch`."""

from bench.cli.command_part import CommandPart

COMMANDS = (
    CommandPart("runs", "bench.cli.commands.runs:runs"),
    CommandPart("verify", "bench.cli.commands.verify:verify"),
    CommandPart("watch", "bench.cli.commands.watch:watch"),
)
