"""Exactly once: what is counted of a crash, on small cases and on a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from exactly_once.crashes import KEPT
from exactly_once.kept import crashed, rows_of
from exactly_once.report import CHECKED, page, together
from little_worlds import ROOT
from study_runs import run_of_matrix

from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import exact_share
from bench.read.render.drawing import style
from bench.read.render.table import comma_separated, markdown
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from studies.exactly_once.study import crashes_table, exactly_once, pictures, tables

REPORT = Path(__file__).parents[2] / "reports" / "exactly_once"
ARCHITECTURES = ("state_machine", "kept")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    values = {
        "name": "test",
        "study": "exactly_once",
        "scenarios": ["trips/all"],
        "architectures": [*ARCHITECTURES],
        "models": ["m"],
        "plans": ["none", "once", "often"],
        "repetitions": 1,
        "seed": 7,
        "model": {"m": {"kind": "simulated"}},
        "plan": {
            "once": {"faults": [{"point": "process", "effect": "unacknowledged", "tool": "cancel_flight", "attempts": [1]}]},
            "often": {"faults": [{"point": "process", "effect": "recorded", "tool": "send", "attempts": [1]}]},
        },
        "architecture": {"kept": {"base": "state_machine", "remedies": True}},
    }
    matrix = build_matrix(Config.model_validate(values), [ROOT], "code")
    return run_of_matrix(tmp_path_factory.mktemp("exactly_once"), matrix)


def test_what_the_full_size_keeps_of_its_trials_is_all_that_the_study_reads(run: Run) -> None:
    kept = replace(run, trials=run.trials[KEPT])
    assert exactly_once(kept) == exactly_once(run)


def test_a_crash_counts_what_its_control_did_not_do(run: Run) -> None:
    """Bare the flight is cancelled once, when it is struck; it dies there, and the step is done again: cancelled twice, then
    booked. What it never takes back it does not take back in the control either."""
    by_architecture_and_point = {(row.architecture, row.point): row for row in exactly_once(run)}
    bare = by_architecture_and_point["state_machine", "unacknowledged"]
    assert (bare.crashes, bare.left_out, bare.instances) == (1, 0, 1)
    assert bare.shares["uncompensated"].k == 0
    assert run.trials["damage_uncompensated"].max() > 0


def test_trials_in_which_it_died_more_than_once_are_left_out_and_counted(run: Run) -> None:
    by_architecture_and_point = {(row.architecture, row.point): row for row in exactly_once(run)}
    assert [
        (by_architecture_and_point[name, "recorded"].crashes, by_architecture_and_point[name, "recorded"].left_out)
        for name in ARCHITECTURES
    ] == [(0, 1), (0, 1)]


def test_the_counts_are_those_of_the_trials(run: Run) -> None:
    trials = run.trials[run.trials["architecture"] == "state_machine"]
    crash, control = (trials[trials["plan"] == plan] for plan in ("once", "none"))
    [row] = [each for each in exactly_once(run) if (each.architecture, each.point) == ("state_machine", "unacknowledged")]
    for kind, effects in row.effects.items():
        assert effects == max(0, crash[f"damage_{kind}"].sum() - control[f"damage_{kind}"].sum())
        assert row.shares[kind] == exact_share(int(effects > 0), 1)


def test_repetitions_that_came_to_the_same_count_once(run: Run) -> None:
    copies = replace(run, trials=pd.concat([run.trials, run.trials.assign(repetition=2)], ignore_index=True))
    assert exactly_once(copies) == exactly_once(run)
    struck = copies.trials["repetition"].eq(2) & copies.trials["plan"].eq("once")
    apart = copies.trials.assign(damage_orphaned=copies.trials["damage_orphaned"].where(~struck, 9))
    by_architecture_and_point = {(row.architecture, row.point): row for row in exactly_once(replace(run, trials=apart))}
    crashed = by_architecture_and_point["state_machine", "unacknowledged"]
    assert crashed.crashes == 2, "a repetition that came to something else is another trial"


def test_its_table_and_its_figure_say_that_the_model_is_simulated(run: Run) -> None:
    [table] = tables(run)
    assert "SIMULATED" in markdown(table)
    assert len(table.rows) == len(ARCHITECTURES) * 2
    with style():
        [picture] = pictures(run)
    assert "SIMULATED" in picture.caption


def test_the_exact_interval_of_none_of_n_is_the_rule_of_three() -> None:
    share = exact_share(0, 1_000)
    assert share.low == 0.0 and share.high == pytest.approx(1 - 0.025 ** (1 / 1_000))
    assert exact_share(0, 0).rate is None


def test_the_committed_page_is_what_the_code_makes_of_the_committed_numbers() -> None:
    assert page(REPORT) == (REPORT / "README.md").read_text(encoding="utf-8")
    [counted] = rows_of(REPORT, "checks")
    trials, planned, delivered, none, agree = (int(counted[name]) for name in CHECKED)
    assert (agree, delivered) == (trials, planned - none)
    crashes = crashed(REPORT)
    assert comma_separated(crashes_table(crashes)) == (REPORT / "study-exactly-once.csv").read_text(encoding="utf-8")
    assert comma_separated(together(crashes)) == (REPORT / "together.csv").read_text(encoding="utf-8")
