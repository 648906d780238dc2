"""Which tables a report has: one entry each, in the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.analysis.arms import Arms
from bench.analysis.claims.published import Published
from bench.analysis.claims.verdicts import Judged, Judgement
from bench.analysis.frames import Run
from bench.raised import words_of
from bench.registry import Kind
from bench.render.limits import with_limits
from bench.render.table import Table
from bench.report.account_tables import fault_receipts, ledger, spent_by_solved, usage
from bench.report.break_even import break_even_tables
from bench.report.claims_table import claims_tables, other_claims
from bench.report.comparison import comparison
from bench.report.difference_tables import differences, models, noise_floor
from bench.report.failure_tables import failure_tables
from bench.report.instance_tables import by_instance, solved_differences
from bench.report.latency_tables import latency_tables
from bench.report.natural_table import natural_table
from bench.report.outcome_tables import outcomes, reruns
from bench.report.recovery_rates import recovery_tables
from bench.report.systems_table import systems
from bench.report.table_part import Results, TablePart
from bench.report.world_tables import refusals, world_tables
from bench.studies import sensitivity
from bench.studies.registry import study_tables

OURS = (
    TablePart("claims", lambda of: claims_tables(of.run, of.judgements, of.published), "verdicts", says_limits=False),
    TablePart("sensitivity", lambda of: sensitivity.tables(of.run, of.published, of.judgements), "verdicts", says_limits=False),
    TablePart("other_claims", lambda of: (other_claims(of.run, one) for one in of.others), "verdicts", says_limits=False),
    TablePart("failure", lambda of: failure_tables(of.run, of.arms, of.published), "failure"),
    TablePart("recovery", lambda of: recovery_tables(of.run, of.arms), "recovery"),
    TablePart("break_even", lambda of: break_even_tables(of.run, of.arms, of.published), "break_even"),
    TablePart("comparison", lambda of: (comparison(of.run, of.arms, one, of.published) for one in of.arms), "comparison"),
    TablePart("outcomes", lambda of: outcomes(of.run, of.arms), "outcomes"),
    TablePart("reruns", lambda of: reruns(of.run, of.arms), "outcomes"),
    TablePart("systems", lambda of: systems(of.run, of.arms), "outcomes"),
    TablePart("world", lambda of: world_tables(of.run, of.arms), "world"),
    TablePart("world_refusals", lambda of: refusals(of.run, of.arms), "refusals", concerns=("tool_calls",)),
    TablePart("differences", lambda of: differences(of.run, of.arms), "differences"),
    TablePart("noise_floor", lambda of: noise_floor(of.run, of.arms), "differences"),
    TablePart("solved_differences", lambda of: solved_differences(of.run, of.arms), "differences"),
    TablePart("models", lambda of: models(of.run, of.arms), "models"),
    TablePart("per_solved", lambda of: spent_by_solved(of.run, of.arms), "cost"),
    TablePart("ledger", lambda of: ledger(of.run, of.arms), "ledger"),
    TablePart("receipts", lambda of: fault_receipts(of.run, of.arms), "faults"),
    TablePart("natural_failures", lambda of: natural_table(of.run, of.published), "faults"),
    TablePart("usage", lambda of: usage(of.run), "tokenizer"),
    TablePart("latency", lambda of: latency_tables(of.run, of.published), "latency"),
    TablePart("instances", lambda of: by_instance(of.run, of.arms), "instances"),
    TablePart("study", lambda of: study_tables(of.run), "study"),
)
TABLES = Kind("table", TablePart, f"{__name__}:OURS")


def all_tables(
    run: Run, arms: Arms, published: Published, judgements: Sequence[Judgement], others: Sequence[Judged] = ()
) -> list[Table]:
    """Every table of a report, each with the section that it stands in."""
    results = Results(run, arms, published, judgements, others)
    made = ((part, table) for part in TABLES if _concerned(part, run) for table in _made(part, results))
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
