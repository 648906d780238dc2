"""The wing of frameworks: published architectures, and the frameworks that people build agents with."""

ENTRIES = {"architectures": ("bench.frameworks.entries:ARCHITECTURES",)}
"""The entries that the wing adds, by kind (`bench.registry.WINGS`)."""
