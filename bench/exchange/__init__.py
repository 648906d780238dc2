"""The wing of exchange: runs in formats of other programs, and packs made from their runs and tables."""

ENTRIES = {
    "commands": ("bench.exchange.commands:COMMANDS",),
    "exports": ("bench.exchange.entries:EXPORTS",),
    "pack_sources": ("bench.exchange.commands:PACK_SOURCES",),
}
"""The entries that the wing adds, by kind (`bench.registry.WINGS`)."""
