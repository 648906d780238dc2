"""The entries of `bench check` and `bench new`."""

from bench.cli.command_part import CommandPart

COMMANDS = (
    CommandPart("check", "bench.authoring.commands:check"),
    CommandPart("new", "bench.authoring.commands:new_app"),
)
