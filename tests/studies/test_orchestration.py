"""Who orchestrates: only arms that differ in one thing are compared, copies stand in one row, and the luck of the calls is the
variance over draws under the same faults."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from study_runs import run_of_matrix
from trials import ROOTS

from bench.read.analysis.frames import Run
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from studies.orchestration.study import PatternPair, ProposerGap, answers, corrected, luck, tables
from studies.rises import Rises

FOLDER = ROOTS[0].parent / "studies" / "orchestration"
CONFIG = FOLDER / "config.toml"
FEW = {"scenarios": ["support_desk"], "instances": 2, "plans": ["none", "lost_ack"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of_matrix(tmp_path_factory.mktemp("leads"), build_matrix(load_config(CONFIG, FEW), ROOTS[:1], "code"))


def test_no_two_arms_are_compared_that_differ_in_pattern_and_form(run: Run) -> None:
    arms = [pair.split(" less ") for each in answers(run)[0] for pair in each.arms]
    assert arms and all(
        first.removesuffix("_remedied") == second.removesuffix("_remedied")
        or first.endswith("_remedied") == second.endswith("_remedied")
        for first, second in arms
    )


def test_a_model_that_leads_rightly_does_as_code_that_leads(run: Run) -> None:
    same = {pair for each in answers(run)[0] if not each.differs for pair in each.arms}
    assert "delegation_by_model less plan_and_replan" in same
    lost = [each for each in answers(run)[0] if each.plan == "lost_ack" and each.differs and each.outcome == "damage"]
    assert [len(each.arms) for each in lost] == [3]


def test_pairs_and_gaps_are_corrected_together_and_so_is_the_number_that_would_decide() -> None:
    rises = Rises({f"case_{number:02}": float(number) for number in range(1, 13)}, 12, 12)
    pair, gap = PatternPair("s", "none", "m", ("a less b",), "damage", rises), ProposerGap("s", "a less b", (), rises)
    [[alone], _], [[first, second], [third]] = corrected([pair], []), corrected([pair, pair], [gap])
    assert rises.p is not None and (alone.p, first.p, third.p) == (rises.p, 3 * rises.p, 3 * rises.p)
    assert (
        alone.needed is not None and first.needed is not None and alone.needed < first.needed == second.needed == third.needed
    )


def draws(*damaged: tuple[float, ...]) -> pd.DataFrame:
    """One trial for each set of draws (a column) of each instance (a row)."""
    return pd.DataFrame(
        {"instance": f"case_{row}", "plan": "none", "repetition": 1, "model": f"errs_{draw}", "is_damaged": value}
        for row, values in enumerate(damaged)
        for draw, value in enumerate(values)
    )


def test_luck_is_the_variance_over_draws_and_not_between_instances() -> None:
    never, half = luck(draws((0, 0), (1, 1))), luck(draws((0, 1), (1, 1)))
    assert never is not None and half is not None
    assert (never.value, half.value) == (0.0, 0.25)
    assert luck(draws((0,), (1,))) is None


def test_with_several_proposers_each_pair_has_a_gap_for_each_and_the_rates_are_those_of_the_config(tmp_path: Path) -> None:
    few = {"scenarios": ["contract_renewal"], "instances": 2, "models": ["as_0.5b", "as_1.5b_1", "as_1.5b_2", "right"]}
    run = run_of_matrix(tmp_path, build_matrix(load_config(FOLDER / "proposers.toml", few), ROOTS[:1], "code"))
    made = {table.name.removeprefix("study-orchestration-"): table for table in tables(run)}
    assert list(made) == ["proposers", "counts", "gaps", "decomposed"]
    assert [title for title in made["gaps"].columns if title.startswith("Gap")] == [
        "Gap, as_0.5b",
        "Gap, as_1.5b",
        "Gap, right",
    ]
    assert len(made["gaps"].rows) == 11  # ten pairs of five bare patterns, and a pattern beside its remedies
    assert [row[2] for row in made["counts"].rows] == [11, 11, 11]
    by_proposer = {row[1]: row[-1] for row in made["decomposed"].rows}
    assert by_proposer["right"] == "one set" and by_proposer["as_1.5b"] != "one set"
