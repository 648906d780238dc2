"""The commands, and what some of them choose from. A command's module is imported when it is
typed; the text beside it is the first line of its help."""

from bench.cli.command_part import CommandPart, ComparisonPart, EnginePart, PackSourcePart

COMMANDS = (
    CommandPart("list", "bench.cli.main:list_", "List packs, architectures, models, faults, metrics and tables."),
    CommandPart("doctor", "bench.cli.main:doctor", "Show the sandbox guards of this machine and all versions."),
    CommandPart("run", "bench.cli.main:run", "Run a config; the same command continues a stopped run."),
    CommandPart("report", "bench.cli.main:report", "Write the tables, figures and page of one run or several."),
    CommandPart("regrade", "bench.cli.main:regrade", "Grade the stored answers of runs anew; no model is asked."),
    CommandPart("trace", "bench.cli.trace:trace", "Show the trials behind a claim or, with --trial, one trial."),
    CommandPart("check", "bench.cli.authoring.commands:check", "Check whether packs are sound; exit with 1 if any is not."),
    CommandPart("new", "bench.cli.authoring.commands:new_app", "Begin a scenario pack, or a package of parts."),
    CommandPart("export", "bench.cli.commands.export:export", "Write a run in a form that other programs read."),
    CommandPart("import", "bench.cli.commands.export:import_", "Tell what happened in a run of others, or make a pack of it."),
    CommandPart("reexecute", "bench.cli.commands.reexecute:reexecute", "Send recorded calls of others to your own MCP server."),
    CommandPart("noise", "bench.cli.commands.noise:noise", "Say how far two runs of one system differ by chance."),
    CommandPart("archive", "bench.cli.commands.export:archive", "Write runs as one small file each."),
    CommandPart("runs", "bench.cli.commands.runs:runs", "List all runs, and write a page of them with rankings."),
    CommandPart("verify", "bench.cli.commands.verify:verify", "Check that the records of runs are as they were written."),
    CommandPart("watch", "bench.cli.commands.watch:watch", "Show a page of a run while it goes on, until Ctrl-C."),
    CommandPart("compare", "bench.cli.commands.compare:compare", "Ask whether run B is worse than run A."),
    CommandPart("merge", "bench.cli.commands.merge:merge", "Join parts of a run that were recorded apart."),
    CommandPart("serve", "bench.cli.commands.serve:command", "Serve a model to your agent; count what failures cost it."),
    CommandPart("probe", "bench.cli.commands.probe:probe", "Find out whether your own agent does damage."),
    CommandPart("scorecard", "bench.cli.commands.scorecard:scorecard", "Show how surely systems recover, and what they break."),
    CommandPart("shrink", "bench.cli.commands.counterfactual:shrink", "Find the fewest faults that still break a trial."),
    CommandPart("search", "bench.cli.commands.counterfactual:search", "Find the faults that do most damage to an agent."),
    CommandPart(
        "diagnose", "bench.cli.commands.diagnose:diagnose", "Find which part of an agent is to blame for its failed trials."
    ),
    CommandPart("diverge", "bench.cli.commands.diverge:diverge", "Say how far two models, prompts or patterns diverge."),
    CommandPart("advise", "bench.cli.commands.advise:advise", "Advise on which pattern to build for a workload."),
    CommandPart("learn", "bench.cli.commands.learn:learn", "Learn from a run's rejections which subtasks share a call."),
)
COMPARISONS = ComparisonPart("scorecard", "bench.cli.commands.scorecard:compared", suffix=".json")
ENGINES = EnginePart("ray", "bench.run.engine.ray:engine_of", extra="ray")
PACK_SOURCES = PackSourcePart(
    "rows", "bench.cli.authoring.pack_of_rows:pack_of_table", suffixes=(".csv", ".tsv", ".jsonl", ".ndjson")
)
