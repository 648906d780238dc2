"""The wing of regressions: whether a run is worse than an earlier one, arm by arm, and how many pairs would decide it."""

ENTRIES = {"commands": ("bench.read.compare.entries:COMMANDS",)}
"""The wing's entries by kind (`bench.common.registry.WINGS`)."""
