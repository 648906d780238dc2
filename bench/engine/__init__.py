"""The wing of engines: they run trials outside of this process. It also holds the workers, and `bench merge`."""

ENTRIES = {"commands": ("bench.engine.entries:COMMANDS",), "engines": ("bench.engine.entries:ENGINES",)}
"""What the wing brings, by kind (`bench.registry.WINGS`)."""
