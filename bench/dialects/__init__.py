"""The wing of dialects: the APIs, beside chat completions, in which a client asks the measuring endpoint."""

ENTRIES = {"dialects": ("bench.dialects.entries:DIALECTS",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
