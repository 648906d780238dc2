"""The wing of dialects: the APIs, beside chat completions, that the measuring endpoint serves."""

ENTRIES = {"dialects": ("bench.run.dialects.entries:DIALECTS",)}
"""The entries that the wing adds, by kind (`bench.common.registry.WINGS`)."""
