"""Which tables a report has: each has its entry below the function that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bench.analysis.frames import Run
from bench.raised import words_of
from bench.registry import Registry
from bench.render.limits import with_limits
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
    "bench.report.natural_table",
    "bench.report.latency_tables",
    "bench.report.tables",
)
"""The core's files with tables, in the order in which these stand within a section."""
TABLES = Registry("table", TablePart, *(f"{file}:PARTS" for file in FILES))


def all_tables(results: Results, parts: Iterable[TablePart] = TABLES) -> list[Table]:
    """Every table of a report, or those of some parts, each with the section that it stands in."""
    ordered = sorted(parts, key=lambda part: list(SECTIONS).index(part.section))
    made = ((part, table) for part in ordered if _concerned(part, results.run) for table in _made(part, results))
    return [replace(with_limits(table) if part.says_limits else table, section=part.section) for part, table in made]


def _concerned(part: TablePart, run: Run) -> bool:
    return all(len(getattr(run, frame)) for frame in part.concerns)


def _made(part: TablePart, results: Results) -> Iterator[Table]:
    """The tables of a part; where that of another package fails, one that says why."""
    try:
        made = part.make(results)
        yield from [made] if isinstance(made, Table) else list(made)
    except Exception as error:
        if not part.package:
            raise
        yield Table(part.name, f"{part.name}: not shown", ("Why",), ((f"{part.package}: {words_of(error)}",),))
