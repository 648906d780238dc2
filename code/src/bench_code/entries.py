"""The command that this package adds to `bench`."""

from bench.cli.command_part import CommandPart

COMMAND = CommandPart("code", "bench_code.cli:app")
