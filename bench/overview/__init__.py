"""The wing of pages that show runs as they lie in a folder: all of them with rankings, and one while it still goes on."""

ENTRIES = {"commands": ("bench.overview.entries:COMMANDS",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
