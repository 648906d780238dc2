"""The wing of engines: who runs the trials where it is not this process, and what a worker does."""

ENTRIES = {"engines": ("bench.engine.entries:ENGINES",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
