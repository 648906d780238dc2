"""Event log or state machine: what a second notice of one event costs, and that a plan can take it away."""

from __future__ import annotations

import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.log_or_row.study import LogOrRow, comparisons

CONFIG = ROOTS[0].parent / "studies" / "log_or_row" / "config.toml"
FEW = {"instances": 2, "models": ["right"], "plans": ["rings_twice", "rings_once", "lost_answer"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_matrix(tmp_path_factory.mktemp("log"), build_matrix(load_config(CONFIG, FEW), ROOTS[:1], "code"))


def compared(run: Run) -> dict[tuple[str, str], LogOrRow]:
    return {(each.plan, each.form): each for each in comparisons(run)}


def test_a_bare_log_is_damaged_by_the_second_ring_alone_and_a_row_is_not(run: Run) -> None:
    twice, once = (compared(run)[plan, "bare"].difference.value for plan in ("rings_twice", "rings_once"))
    assert twice is not None and twice > 0
    assert once == 0


def test_the_second_ring_is_missed_in_every_plan_that_says_so(run: Run) -> None:
    missed = run.faults[run.faults["effect"] == "missed"]
    assert set(missed["plan"].astype(str)) == {"rings_once", "lost_answer"}
    assert len(missed) == 2 * 2 * 4


def test_with_remedies_a_lost_answer_damages_neither(run: Run) -> None:
    remedied = compared(run)["lost_answer", "with remedies"]
    assert (remedied.log, remedied.row, remedied.difference.value) == (0, 0, 0)


def test_a_run_of_one_pattern_alone_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = load_config(CONFIG, {**FEW, "architectures": ["state_machine"], "plans": ["rings_once"]})
    only = run_of_matrix(tmp_path_factory.mktemp("row"), build_matrix(rows, ROOTS[:1], "code"))
    with pytest.raises(ResultsError, match="needs trials of 'event_driven' and 'state_machine'"):
        comparisons(only)
