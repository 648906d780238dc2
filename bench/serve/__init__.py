"""The wing of sessions: an outside system is given trials, and hands answers in."""

ENTRIES = {"commands": ("bench.serve.entries:COMMANDS",), "outside_systems": ("bench.serve.entries:SERVED",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
