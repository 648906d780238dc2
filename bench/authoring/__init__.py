"""The wing of authors: how somebody begins a pack or a package of parts, and what makes a pack sound."""

ENTRIES = {"commands": ("bench.authoring.entries:COMMANDS",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
