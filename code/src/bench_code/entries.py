"""The command that this package adds to `bench`."""

from bench.cli.command_part import CommandPart

COMMAND = CommandPart("code", "bench_code.cli:app", "Show what a patch of code invalidates, and what must run again.")
