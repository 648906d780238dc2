"""The wing of authors: how to begin a pack or a package of parts, and what makes a pack sound."""

ENTRIES = {"commands": ("bench.cli.authoring.entries:COMMANDS",)}
"""The wing's entries by kind (`bench.common.registry.WINGS`)."""
