"""The wing of sessions: an outside system gets trials, and hands in answers."""

ENTRIES = {"commands": ("bench.run.serve.entries:COMMANDS",), "outside_systems": ("bench.run.serve.entries:SERVED",)}
"""The entries that the wing adds, by kind (`bench.common.registry.WINGS`)."""
