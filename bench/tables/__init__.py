"""The wing of tables: the tables and figures of every report, and the computations that only they need."""

ENTRIES = {
    "tables": (
        "bench.tables.failure_tables:PARTS",
        "bench.tables.recovery_rates:PARTS",
        "bench.tables.comparison:PARTS",
        "bench.tables.outcome_tables:PARTS",
        "bench.tables.systems_table:PARTS",
        "bench.tables.difference_tables:PARTS",
        "bench.tables.instance_tables:PARTS",
        "bench.tables.account_tables:PARTS",
        "bench.tables.latency_tables:PARTS",
    ),
    "figures": ("bench.tables.arm_figures:PARTS",),
}
"""The wing's entries by kind (`bench.registry.WINGS`). Tables stand within a section in this order."""
