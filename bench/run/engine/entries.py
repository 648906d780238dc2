"""The entry of the engine that runs trials on Ray, and of the command that joins parts of a run."""

from bench.cli.command_part import CommandPart, EnginePart

ENGINES = EnginePart("ray", "bench.run.engine.ray:engine_of", extra="ray")
COMMANDS = CommandPart("merge", "bench.cli.commands.merge:merge")
