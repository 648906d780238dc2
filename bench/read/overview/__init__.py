"""The wing that looks at the runs in a folder: all of them with rankings, whether they are sound, and one while it goes on."""

ENTRIES = {"commands": ("bench.read.overview.entries:COMMANDS",)}
"""The wing's entries by kind (`bench.common.registry.WINGS`)."""
