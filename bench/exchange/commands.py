"""The entries of `bench export`, `import`, `archive` and `new scenario --from`, apart from the forms, which import pandas."""

from bench.cli.command_part import CommandPart, PackSourcePart

COMMANDS = (
    CommandPart("export", "bench.exchange.cli:export"),
    CommandPart("import", "bench.exchange.cli:import_"),
    CommandPart("archive", "bench.exchange.cli:archive"),
)
PACK_SOURCES = PackSourcePart(
    "rows", "bench.exchange.pack_of_rows:pack_of_table", suffixes=(".csv", ".tsv", ".jsonl", ".ndjson")
)
