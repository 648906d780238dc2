"""The wing of studies: one file for each question beyond the paper, with its analysis and its tables and figures, registered in
`entries.py`. `claims` compares published results with a run's data."""

ENTRIES = {
    "claims": ("bench.studies.entries:CLAIMS",),
    "commands": ("bench.studies.entries:COMMANDS",),
    "figures": (
        "bench.read.claims.beside_paper:FIGURES",
        "bench.studies.figures:FIGURES",
    ),
    "studies": ("bench.studies.entries:STUDIES",),
    "tables": (
        "bench.read.claims.beside_paper:TABLES",
        "bench.read.claims.judging:TABLES",
        "bench.read.claims.break_even_table:TABLES",
        "bench.read.claims.natural_table:TABLES",
    ),
}
"""What this wing registers, by kind (`bench.common.registry.WINGS`)."""
