"""The wing of exchange: a run in forms that other programs read, and packs made of the runs and tables that they wrote."""

ENTRIES = {
    "commands": ("bench.exchange.commands:COMMANDS",),
    "exports": ("bench.exchange.entries:EXPORTS",),
    "pack_sources": ("bench.exchange.commands:PACK_SOURCES",),
}
"""What it brings, by kind (`bench.registry.WINGS`)."""
