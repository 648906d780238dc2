"""The entries of the wing `codebase`."""

from __future__ import annotations

from bench.cli.command_part import CommandPart

COMMANDS = CommandPart("code", "bench.codebase.cli:app")
