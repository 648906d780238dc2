"""The entries of the commands with which a pack, or a package of parts, is begun and checked."""

from bench.cli.command_part import CommandPart

COMMANDS = (
    CommandPart("check", "bench.authoring.commands:check"),
    CommandPart("new", "bench.authoring.commands:new_app"),
)
