"""The wing of exchange: runs in formats of other programs, and packs made from their runs and tables."""

ENTRIES = {
    "commands": ("bench.cli.commands.exchange:COMMANDS",),
    "exports": ("bench.read.export.entries:EXPORTS",),
    "pack_sources": ("bench.cli.commands.exchange:PACK_SOURCES",),
}
"""The entries that the wing adds, by kind (`bench.common.registry.WINGS`)."""
