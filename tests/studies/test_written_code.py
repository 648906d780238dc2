"""Written code: the table has the mutation score of the tests that a model wrote, and none of its lines."""

from __future__ import annotations

from pathlib import Path

from study_runs import run_of_matrix
from trials import ROOTS

from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.written_code.study import scores, tables

CONFIG = ROOTS[0].parent / "studies" / "written_code" / "config.toml"
FEW = {"instances": 2, "architectures": ["state_machine_remedied"]}


def test_a_right_test_has_a_score_and_where_wrong_code_was_put_in_its_place_none_stands(tmp_path: Path) -> None:
    run = run_of_matrix(tmp_path, build_matrix(load_config(CONFIG, FEW), ROOTS[:1], "code"))
    trials = run.trials.set_index("trial").loc[list(scores(run))]
    assert set(trials["scenario"]) == {"service_upgrade:write_test"}
    by_plan = {plan: [scores(run)[trial] for trial in of_plan.index] for plan, of_plan in trials.groupby("plan", observed=True)}
    assert all(0.5 < score <= 1 for score in by_plan["none"]) and set(by_plan["wrong_code"]) == {0.0}
    [table] = tables(run)
    shown = {(row[0], row[2]): row for row in table.texts()}
    assert shown["a line", "none"][6] == "–" != shown["a test", "none"][6]
    assert shown["a test", "none"][4].startswith("2/2") and shown["a test", "wrong code"][4].startswith("0/2")
