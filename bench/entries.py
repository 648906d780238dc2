"""The import paths of the built-in parts, by kind. Another package declares its parts as entry points with the same kinds.

This module knows every room: a new built-in part is a line here, or an entry in a file that a line names.
"""

ENTRIES = {
    "architectures": (
        "bench.run.architectures.registry:OURS",
        "bench.run.frameworks.entries:ARCHITECTURES",
        "bench.worlds.run.entries:ARCHITECTURES",
    ),
    "commands": ("bench.cli.commands.entries:COMMANDS",),
    "dialects": ("bench.run.endpoint.dialect:CHAT", "bench.run.endpoint.entries:DIALECTS"),
    "doors": (
        "bench.probe.run.gateway.stdio:KIND",
        "bench.probe.run.gateway.mcp_http:KIND",
        "bench.probe.run.gateway.http:KIND",
        "bench.probe.run.gateway.functions:KIND",
        "bench.probe.run.gateway.database:KIND",
        "bench.probe.run.gateway.outbox_doors:KIND",
        "bench.probe.run.gateway.model:KIND",
    ),
    "effects": (
        "bench.run.trial.text_effects:EFFECTS",
        "bench.run.trial.call_effects:EFFECTS",
        "bench.worlds.run.effects:EFFECTS",
    ),
    "environments": ("bench.worlds.run.kind:ENVIRONMENTS",),
    "events": (
        "bench.record.events:ENTRIES",
        "bench.record.world_events:EVENTS",
        "bench.record.process_events:EVENTS",
        "bench.record.probe_events:EVENTS",
    ),
    "exports": ("bench.read.export.entries:EXPORTS",),
    "figures": (
        "bench.read.tables.arm_figures:PARTS",
        "bench.read.claims.beside_paper:FIGURES",
        "bench.read.report.figures:STUDY",
    ),
    "formats": (
        "bench.elsewhere.formats.tau:FORMATS",
        "bench.elsewhere.formats.inspect_logs:FORMATS",
        "bench.elsewhere.formats.shells:FORMATS",
    ),
    "frames": ("bench.read.analysis.rows:OURS", "bench.worlds.read.frames:FRAMES"),
    "metrics": (
        "bench.read.analysis.metrics:OURS",
        "bench.read.claims.counted:METRICS",
        "bench.worlds.read.metrics:METRICS",
    ),
    "models": ("bench.run.experiment.model_entries:OURS", "bench.run.openai.entries:MODELS"),
    "outside_systems": ("bench.worlds.run.entries:COMMAND", "bench.run.serve.entries:SERVED"),
    "points": ("bench.probe.points:OURS",),
    "stores": (
        "bench.probe.run.witness.sqlite:KIND",
        "bench.probe.run.witness.postgres:KIND",
        "bench.probe.run.witness.folder:KINDS",
        "bench.probe.run.witness.memory:KIND",
        "bench.probe.run.witness.outbox:KINDS",
    ),
    "tables": (
        "bench.read.report.tables:STUDY",
        "bench.read.tables.model_table:PARTS",
        "bench.read.tables.failure_tables:PARTS",
        "bench.read.tables.recovery_rates:PARTS",
        "bench.read.tables.comparison:PARTS",
        "bench.read.tables.outcome_tables:PARTS",
        "bench.read.tables.systems_table:PARTS",
        "bench.read.tables.difference_tables:PARTS",
        "bench.read.tables.account_tables:PARTS",
        "bench.read.tables.latency_tables:PARTS",
        "bench.worlds.read.tables:PARTS",
        "bench.worlds.read.scorecard.tables:PARTS",
        "bench.worlds.read.workflow_tables:PARTS",
        "bench.read.claims.beside_paper:TABLES",
        "bench.read.claims.judging:TABLES",
        "bench.read.claims.break_even_table:TABLES",
        "bench.read.claims.natural_table:TABLES",
    ),
}
"""The plural of a kind of part -> the import paths of its entries. A report shows the tables of a section in this order."""
