"""The wing of tables: the tables and figures of every report, and the computations that only they need."""

ENTRIES = {
    "tables": (
        "bench.read.tables.failure_tables:PARTS",
        "bench.read.tables.recovery_rates:PARTS",
        "bench.read.tables.comparison:PARTS",
        "bench.read.tables.outcome_tables:PARTS",
        "bench.read.tables.systems_table:PARTS",
        "bench.read.tables.difference_tables:PARTS",
        "bench.read.tables.instance_tables:PARTS",
        "bench.read.tables.account_tables:PARTS",
        "bench.read.tables.latency_tables:PARTS",
    ),
    "figures": ("bench.read.tables.arm_figures:PARTS",),
}
"""The wing's entries by kind (`bench.common.registry.WINGS`). Tables stand within a section in this order."""
