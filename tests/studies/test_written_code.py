"""Written code: the table has the mutation score of the tests that a model wrote, and none of its lines."""

from __future__ import annotations

from pathlib import Path

from study_runs import run_of_matrix
from trials import ROOTS

from bench.read.analysis.frames import Run
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.written_code.study import scores, tables

STUDY = ROOTS[0].parent / "studies" / "written_code"
FEW = {"instances": 2, "architectures": ["state_machine_remedied"]}


def run_of(config: str, folder: Path) -> Run:
    return run_of_matrix(folder, build_matrix(load_config(STUDY / config, FEW), ROOTS[:1], "code"))


def test_a_right_test_has_a_score_and_where_wrong_code_was_put_in_its_place_none_stands(tmp_path: Path) -> None:
    run = run_of("config.toml", tmp_path)
    trials = run.trials.set_index("trial").loc[list(scores(run))]
    by_plan = {plan: [scores(run)[trial] for trial in of_plan.index] for plan, of_plan in trials.groupby("plan", observed=True)}
    assert all(0.5 < score <= 1 for score in by_plan["none"]) and set(by_plan["wrong_code"]) == {0.0}
    [table] = tables(run)
    shown = {(row[0], row[2]): row for row in table.texts()}
    assert shown["a test", "none"][4].startswith("2/2") and shown["a test", "wrong code"][4].startswith("0/2")


def test_a_line_has_no_score(tmp_path: Path) -> None:
    run = run_of("written_lines.toml", tmp_path)
    assert not scores(run)
    [table] = tables(run)
    assert {(row[0], row[6]) for row in table.texts()} == {("a line", "–")}
