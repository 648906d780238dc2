"""The wing of frameworks: architectures that others published, and the frameworks that people build agents with."""

ENTRIES = {"architectures": ("bench.frameworks.entries:ARCHITECTURES",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
