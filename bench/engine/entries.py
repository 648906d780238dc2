"""The entry of the engine that runs trials on Ray."""

from bench.cli.command_part import EnginePart

ENGINES = EnginePart("ray", "bench.engine.ray:engine_of", extra="ray")
