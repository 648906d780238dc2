"""The wing of studies: for each question beyond the paper one file, with its analysis and its view, and an entry in
`entries.py`; what was published, and what a run's data says of it, in `claims`."""

ENTRIES = {
    "claims": ("bench.studies.entries:CLAIMS",),
    "commands": ("bench.studies.entries:COMMANDS",),
    "figures": (
        "bench.studies.claims.beside_paper:FIGURES",
        "bench.studies.figures:FIGURES",
    ),
    "studies": ("bench.studies.entries:STUDIES",),
    "tables": (
        "bench.studies.claims.beside_paper:TABLES",
        "bench.studies.claims.judging:TABLES",
        "bench.studies.claims.break_even_table:TABLES",
        "bench.studies.claims.natural_table:TABLES",
    ),
}
"""What it brings, by kind (`bench.registry.WINGS`)."""
