"""The entry of `bench compare`."""

from bench.cli.command_part import CommandPart

COMMANDS = CommandPart("compare", "bench.cli.commands.compare:compare")
