"""The wing of engines: they run trials outside of this process. It also holds the workers, and `bench merge`."""

ENTRIES = {"commands": ("bench.run.engine.entries:COMMANDS",), "engines": ("bench.run.engine.entries:ENGINES",)}
"""What the wing brings, by kind (`bench.common.registry.WINGS`)."""
