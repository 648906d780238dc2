"""The wing of pages that show the runs in a folder: all runs with rankings, and one run while it goes on."""

ENTRIES = {"commands": ("bench.overview.entries:COMMANDS",)}
"""The wing's entries by kind (`bench.registry.WINGS`)."""
