"""The wing of engines: who runs the trials where it is not this process, what a worker does, and how parts of
a run become one."""

ENTRIES = {"commands": ("bench.engine.entries:COMMANDS",), "engines": ("bench.engine.entries:ENGINES",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
