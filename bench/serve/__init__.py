"""The wing of sessions: an outside system gets trials, and hands in answers."""

ENTRIES = {"commands": ("bench.serve.entries:COMMANDS",), "outside_systems": ("bench.serve.entries:SERVED",)}
"""The entries that the wing adds, by kind (`bench.registry.WINGS`)."""
