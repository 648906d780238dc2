"""The wing of worlds: environments that an agent acts in, how it acts, the patterns that do, and what is shown of it."""

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
"""What it brings, by kind (`bench.registry.WINGS`)."""
