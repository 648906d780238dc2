"""The registry of a report's tables. Each table has its entry below the function that makes it."""

from __future__ import annotations

from collections.abc import Iterable

from bench.common.registry import Registry
from bench.read.analysis.results import Results
from bench.read.render.table import Table
from bench.read.render.table_part import SECTIONS, TablePart
from bench.read.report.studies import study_tables

STUDY = TablePart("study", lambda results: study_tables(results.run), "study")
TABLES = Registry("table", TablePart)


def all_tables(results: Results, parts: Iterable[TablePart] = TABLES) -> list[Table]:
    """Return the tables of a report, or of some parts of it, in the order of the sections."""
    ordered = sorted(parts, key=lambda part: list(SECTIONS).index(part.section))
    return [table for part in ordered for table in part.tables(results)]
