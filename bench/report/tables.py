"""Which tables a report has: each has its entry below the function that makes it."""

from __future__ import annotations

from collections.abc import Iterable

from bench.registry import Registry
from bench.render.table import Table
from bench.report.results import Results
from bench.report.studies import study_tables
from bench.report.table_part import SECTIONS, TablePart

PARTS = (TablePart("study", lambda of: study_tables(of.run), "study"),)
FILES = (
    "bench.report.failure_tables",
    "bench.report.recovery_rates",
    "bench.report.comparison",
    "bench.report.outcome_tables",
    "bench.report.systems_table",
    "bench.report.difference_tables",
    "bench.report.instance_tables",
    "bench.report.account_tables",
    "bench.report.latency_tables",
    "bench.report.tables",
)
"""The core's files with tables, in the order in which these stand within a section."""
TABLES = Registry("table", TablePart, *(f"{file}:PARTS" for file in FILES))


def all_tables(results: Results, parts: Iterable[TablePart] = TABLES) -> list[Table]:
    """Every table of a report, or those of some parts, each with the section that it stands in."""
    ordered = sorted(parts, key=lambda part: list(SECTIONS).index(part.section))
    return [table for part in ordered for table in part.tables(results)]
