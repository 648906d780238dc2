"""The commands, and what some of them choose from. A command's module is imported when it is
typed."""

from bench.cli.command_part import CommandPart, ComparisonPart, EnginePart, PackSourcePart

COMMANDS = (
    CommandPart("list", "bench.cli.main:list_"),
    *(CommandPart(name, f"bench.cli.main:{name}") for name in ("doctor", "run", "report", "regrade")),
    CommandPart("trace", "bench.cli.trace:trace"),
    CommandPart("check", "bench.cli.authoring.commands:check"),
    CommandPart("new", "bench.cli.authoring.commands:new_app"),
    CommandPart("export", "bench.cli.commands.export:export"),
    CommandPart("import", "bench.cli.commands.export:import_"),
    CommandPart("reexecute", "bench.cli.commands.reexecute:reexecute"),
    CommandPart("noise", "bench.cli.commands.noise:noise"),
    CommandPart("archive", "bench.cli.commands.export:archive"),
    CommandPart("runs", "bench.cli.commands.runs:runs"),
    CommandPart("verify", "bench.cli.commands.verify:verify"),
    CommandPart("watch", "bench.cli.commands.watch:watch"),
    CommandPart("compare", "bench.cli.commands.compare:compare"),
    CommandPart("merge", "bench.cli.commands.merge:merge"),
    CommandPart("serve", "bench.cli.commands.serve:command"),
    CommandPart("probe", "bench.cli.commands.probe:probe"),
    CommandPart("scorecard", "bench.cli.commands.scorecard:scorecard"),
    CommandPart("shrink", "bench.cli.commands.counterfactual:shrink"),
    CommandPart("search", "bench.cli.commands.counterfactual:search"),
    CommandPart("diagnose", "bench.cli.commands.diagnose:diagnose"),
    CommandPart("diverge", "bench.cli.commands.diverge:diverge"),
    CommandPart("advise", "bench.cli.commands.advise:advise"),
    CommandPart("learn", "bench.cli.commands.learn:learn"),
)
COMPARISONS = ComparisonPart("scorecard", "bench.cli.commands.scorecard:compared", suffix=".json")
ENGINES = EnginePart("ray", "bench.run.engine.ray:engine_of", extra="ray")
PACK_SOURCES = PackSourcePart(
    "rows", "bench.cli.authoring.pack_of_rows:pack_of_table", suffixes=(".csv", ".tsv", ".jsonl", ".ndjson")
)
