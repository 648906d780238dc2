"""The entries of `bench runs`, `bench verify` and `bench watch`."""

from bench.cli.command_part import CommandPart

COMMANDS = (
    CommandPart("runs", "bench.overview.runs_command:runs"),
    CommandPart("verify", "bench.overview.verify_command:verify"),
    CommandPart("watch", "bench.overview.watch_command:watch"),
)
