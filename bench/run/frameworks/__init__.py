"""The wing of frameworks: published architectures, and the frameworks that people build agents with."""

ENTRIES = {"architectures": ("bench.run.frameworks.entries:ARCHITECTURES",)}
"""The entries that the wing adds, by kind (`bench.common.registry.WINGS`)."""
