"""The entries of `bench export`, `import`, `archive` and `new scenario --from`, apart from the forms, which import pandas."""

from bench.cli.command_part import CommandPart, PackSourcePart

COMMANDS = (
    CommandPart("export", "bench.cli.commands.export:export"),
    CommandPart("import", "bench.cli.commands.export:import_"),
    CommandPart("archive", "bench.cli.commands.export:archive"),
)
PACK_SOURCES = PackSourcePart(
    "rows", "bench.cli.authoring.pack_of_rows:pack_of_table", suffixes=(".csv", ".tsv", ".jsonl", ".ndjson")
)
