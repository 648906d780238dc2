"""The entries of `bench check` and `bench new`."""

from bench.cli.command_part import CommandPart

COMMANDS = (
    CommandPart("check", "bench.cli.authoring.commands:check"),
    CommandPart("new", "bench.cli.authoring.commands:new_app"),
)
