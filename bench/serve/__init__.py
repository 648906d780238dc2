"""The wing of sessions: an outside system is given trials, and hands answers in."""

ENTRIES = {"commands": ("bench.serve.entries:COMMANDS",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
