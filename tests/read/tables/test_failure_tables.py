"""What one failure costs, as it is shown: the first round beside the paper's, and no price where too few faults mattered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from records import recovered, run_of, trial, undamaged

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.read.render.cells import text_of
from bench.read.render.table import Table
from bench.read.tables.failure_tables import failure_tables
from bench.record.record import TrialRecord


def struck(
    architecture: str, retry: int, *, masked: Sequence[int] = (), n: int = 6, scenario: str = "demo"
) -> list[TrialRecord]:
    """Trials under a fault that costs one retry; in some the reply would have been rejected anyway. And their controls."""
    records = [trial(architecture, "none", repetition, scenario=scenario) for repetition in range(1, n + 1)]
    for repetition in range(1, n + 1):
        events = recovered(retry + repetition)
        if repetition in masked:
            events[6] = undamaged(2, "b", reason="check")
        records.append(trial(architecture, "paper", repetition, events=events, scenario=scenario))
    return records


def tables_of(run: Run) -> dict[str, Table]:
    return {table.name: table for table in failure_tables(run, arms_of(run))}


def cells(table: Table, row: int = 0) -> dict[str, str]:
    return dict(zip(table.columns, map(text_of, table.rows[row]), strict=True))


def test_the_first_table_has_the_first_round_of_every_architecture_and_what_the_faults_mattered(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [*struck("static", 200), *struck("mine", 100, masked=(1, 2))])
    table = tables_of(run)["first_round"]
    static, mine = cells(table, 0), cells(table, 1)
    assert static["First round, tokens"].startswith("224 ± 2 ")
    assert mine["First round, tokens"].startswith("124 ± 2 "), "effective or masked"
    assert [mine[name] for name in ("Delivered", "Effective", "Masked", "Undetermined", "N")] == ["6", "4", "2", "0", "6"]


def test_the_papers_retry_which_is_counted_otherwise_stands_not_beside_our_whole_round(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", struck("static", 100, scenario="k8s_oomkill"))
    assert not [title for title in tables_of(run)["first_round"].columns if "paper" in title]


def test_a_price_is_told_from_five_effective_faults_on(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [*struck("static", 200, masked=(1,)), *struck("mine", 100, masked=(1, 2))])
    static, mine = (cells(tables_of(run)["price"], row) for row in (0, 1))
    assert static["Price, tokens"].endswith("N=5")
    assert mine["Price, tokens"] == "not measured (N=4)"
    assert mine["First round, tokens"].endswith("N=4"), "of the trials with an effective fault alone"


def test_where_every_fault_is_masked_the_price_is_not_measured_which_is_not_zero(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", struck("static", 100, masked=range(1, 7)))
    shown = cells(tables_of(run)["price"])
    assert shown["Price, tokens"] == shown["Accepted again, tokens"] == "not measured (N=0)"


def test_architectures_are_compared_pair_by_pair_where_both_were_struck(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [*struck("static", 200), *struck("mine", 100, n=5)])
    table = tables_of(run)["failure_differences"]
    shown = {(row["Fault plan"], row["Measure"]): row for row in (cells(table, at) for at in range(len(table.rows)))}
    assert shown["paper", "First round, tokens"]["Mean"].startswith("-100 ± 0 ")
    assert shown["paper", "First round, tokens"]["N"] == "5"
    assert ("none", "First round, tokens") not in shown
    assert shown["none", "First pass, tokens"]["Mean"].startswith("0 ± 0 ")


def test_a_run_without_faults_has_a_first_pass_and_no_first_round(tmp_path: Path) -> None:
    tables = tables_of(run_of(tmp_path / "run", [trial("static", "none", 1), trial("static", "none", 2)]))
    assert "first_round" not in tables and "price" not in tables
    assert cells(tables["first_pass"])["First pass, tokens"] == "240 ± 0 [240, 240]†, N=2"
