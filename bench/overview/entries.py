"""The entries of `bench runs` and `bench watch`."""

from bench.cli.command_part import CommandPart

COMMANDS = (
    CommandPart("runs", "bench.overview.runs_command:runs"),
    CommandPart("watch", "bench.overview.watch_command:watch"),
)
