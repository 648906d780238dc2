"""The wing of exchange: a run in forms that other programs read, and packs made of runs that other programs recorded."""

ENTRIES = {"commands": ("bench.exchange.commands:COMMANDS",), "exports": ("bench.exchange.entries:EXPORTS",)}
"""What it brings, by kind (`bench.registry.WINGS`)."""
