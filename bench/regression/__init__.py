"""The wing of regressions: whether a run is worse than an earlier one, arm by arm, with the pairs that would decide it."""

ENTRIES = {"commands": ("bench.regression.entries:COMMANDS",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
