"""The entries of `bench export` and `bench import`. They stand apart from the forms, which import pandas."""

from bench.cli.command_part import CommandPart

COMMANDS = (CommandPart("export", "bench.exchange.cli:export"), CommandPart("import", "bench.exchange.cli:import_"))
