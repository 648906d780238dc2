"""The commands. A command's module is imported when it is typed; the text beside it is the first line of its help."""

from bench.cli.command_part import CommandPart

COMMANDS = (
    CommandPart("probe", "bench.cli.commands.probe:probe", "Find out whether your own agent does damage when a call fails."),
    CommandPart("run", "bench.cli.commands.run:run", "Measure what failures cost the agents that a config names."),
    CommandPart("report", "bench.cli.commands.report:report", "Write a report of runs: findings, tables and figures."),
    CommandPart("compare", "bench.cli.commands.compare:compare", "Test whether run B is worse than run A, as a gate in CI."),
    CommandPart("trace", "bench.cli.commands.trace:trace", "Show the calls of a trial, or the trials behind a claim."),
    CommandPart("scorecard", "bench.cli.commands.scorecard:scorecard", "Show how often systems recover, and what they damage."),
    CommandPart("new", "bench.cli.authoring.commands:new_app", "Write a new pack of tasks, or a new package of parts."),
    CommandPart("check", "bench.cli.authoring.commands:check", "Check whether packs are sound before they are run."),
    CommandPart("list", "bench.cli.commands.list:list_", "List what a config can name: packs, models, faults, and more."),
    CommandPart("runs", "bench.cli.commands.runs:runs", "List all runs and what they cost, and write a page of them."),
    CommandPart("serve", "bench.cli.commands.serve:command", "Serve a model to your agent; count what failures cost it."),
    CommandPart("import", "bench.cli.commands.export:import_", "Show what happened in a recorded run of any agent."),
    CommandPart("export", "bench.cli.commands.export:export", "Write a run in a form that other programs read."),
    CommandPart("watch", "bench.cli.commands.watch:watch", "Show the progress of a run on a page, until Ctrl-C."),
    CommandPart("verify", "bench.cli.commands.verify:verify", "Check that the records of runs are complete and unchanged."),
    CommandPart("doctor", "bench.cli.commands.doctor:doctor", "Check whether this machine can run models' code safely."),
    CommandPart("explain", help="Find out why trials failed, and what a change would do."),
    CommandPart(
        "explain diagnose",
        "bench.cli.commands.diagnose:diagnose",
        "Find which part of an agent is to blame for its failed trials.",
    ),
    CommandPart(
        "explain shrink", "bench.cli.commands.counterfactual:shrink", "Find the fewest faults that still break a trial."
    ),
    CommandPart(
        "explain search", "bench.cli.commands.counterfactual:search", "Find the faults that do most damage to an agent."
    ),
    CommandPart(
        "explain diverge", "bench.cli.commands.diverge:diverge", "Measure how far two models, prompts or patterns diverge."
    ),
    CommandPart("more", help="Merge, archive or regrade runs, and other rare commands."),
    CommandPart("more merge", "bench.cli.commands.merge:merge", "Join parts of a run that were recorded separately."),
    CommandPart("more archive", "bench.cli.commands.export:archive", "Write each run as one small file."),
    CommandPart(
        "more regrade", "bench.cli.commands.regrade:regrade", "Grade the stored answers of runs again, without a model."
    ),
    CommandPart("more noise", "bench.cli.commands.noise:noise", "Measure how far two runs of one system differ by chance."),
    CommandPart(
        "more reexecute", "bench.cli.commands.reexecute:reexecute", "Send recorded calls of others to your own MCP server."
    ),
    CommandPart("more advise", "bench.cli.commands.advise:advise", "Advise on which pattern to build for a workload."),
    CommandPart("more learn", "bench.cli.commands.learn:learn", "Learn from a run's rejections which subtasks share a call."),
)
