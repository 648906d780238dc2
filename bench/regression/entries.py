"""The entry of the command that compares two runs."""

from bench.cli.command_part import CommandPart

COMMANDS = CommandPart("compare", "bench.regression.command:compare")
