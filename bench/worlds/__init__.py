"""The wing of worlds: environments in which an agent acts, the tools and patterns that act in them, and their tables."""

ENTRIES = {
    "architectures": ("bench.worlds.entries:ARCHITECTURES",),
    "commands": ("bench.worlds.entries:COMMANDS",),
    "comparisons": ("bench.worlds.entries:COMPARISONS",),
    "effects": ("bench.worlds.effects:EFFECTS",),
    "environments": ("bench.worlds.entries:ENVIRONMENTS",),
    "events": ("bench.worlds.runtime.events:EVENTS", "bench.worlds.runtime.process_events:EVENTS"),
    "frames": ("bench.worlds.analysis.frames:FRAMES",),
    "metrics": ("bench.worlds.analysis.metrics:METRICS",),
    "outside_systems": ("bench.worlds.entries:COMMAND",),
    "tables": ("bench.worlds.report.tables:PARTS", "bench.worlds.report.workflow:PARTS"),
}
"""What this wing registers, by kind (`bench.registry.WINGS`)."""
