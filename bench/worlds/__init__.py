"""The wing of worlds: environments in which an agent acts, the tools and patterns that act in them, and their tables."""

ENTRIES = {
    "architectures": ("bench.worlds.run.entries:ARCHITECTURES",),
    "commands": ("bench.worlds.run.entries:COMMANDS",),
    "comparisons": ("bench.worlds.run.entries:COMPARISONS",),
    "effects": ("bench.worlds.run.effects:EFFECTS",),
    "environments": ("bench.worlds.run.entries:ENVIRONMENTS",),
    "events": ("bench.record.worlds.events:EVENTS", "bench.record.worlds.process_events:EVENTS"),
    "frames": ("bench.worlds.read.analysis.frames:FRAMES",),
    "metrics": ("bench.worlds.read.analysis.metrics:METRICS",),
    "outside_systems": ("bench.worlds.run.entries:COMMAND",),
    "tables": ("bench.worlds.read.report.tables:PARTS", "bench.worlds.read.report.workflow:PARTS"),
}
"""What this wing registers, by kind (`bench.common.registry.WINGS`)."""
