"""The entry of `bench serve`."""

from bench.cli.command_part import CommandPart

COMMANDS = CommandPart("serve", "bench.serve.cli:command")
