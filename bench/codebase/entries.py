"""What the wing of code registers at the core."""

from __future__ import annotations

from bench.cli.command_part import CommandPart

COMMANDS = CommandPart("code", "bench.codebase.cli:app")
