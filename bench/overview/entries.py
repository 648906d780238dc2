"""The entries of the commands that show a folder's runs, and a run that goes on."""

from bench.cli.command_part import CommandPart

COMMANDS = (
    CommandPart("runs", "bench.overview.runs_command:runs"),
    CommandPart("watch", "bench.overview.watch_command:watch"),
)
