"""The table of all systems says what each spent, what its framework took a call, and what it cannot express."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import run_of, smooth, trial
from trials import SYSTEMS

from bench.read.analysis.arms import arms_of
from bench.read.render.cells import Estimate
from bench.read.render.table import markdown
from bench.read.tables.systems_table import systems
from bench.record.ledger import ACCOUNTS


def test_a_run_of_our_own_architectures_alone_has_no_such_table(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial("static"), trial("monolithic")])
    assert systems(run, arms_of(run)) == []


def test_framework_time_is_shown_by_call_and_the_accounts_beside_the_tokens(tmp_path: Path) -> None:
    trials = [trial("mellea", repetition=number, framework_seconds=0.3 * number, events=smooth()) for number in (1, 2)]
    run = run_of(tmp_path / "run", [*trials, trial("static")])
    [table] = systems(run, arms_of(run))
    [row] = [dict(zip(table.columns, row, strict=True)) for row in table.rows if row[3] == "mellea"]
    means = {name: cell.mean.mean for name, cell in row.items() if isinstance(cell, Estimate)}
    calls = run.trials.loc[run.trials["architecture"] == "mellea", "calls"].iloc[0]
    assert means["Framework ms a call"] == pytest.approx(450 / calls)
    assert means["Tokens"] == sum(means[name.replace("_", " ")] or 0.0 for name in ACCOUNTS)


def test_the_limits_of_the_systems_that_ran_and_of_no_other_stand_below_it(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial("dspy"), trial("static")])
    [table] = systems(run, arms_of(run))
    text = markdown(table)
    assert all(limit in text for limit in SYSTEMS["dspy"].limits)
    assert not any(limit in text for name in SYSTEMS if name != "dspy" for limit in SYSTEMS[name].limits)
