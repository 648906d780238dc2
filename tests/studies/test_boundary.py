"""The boundary's study: contrasts by hand, and a run that planted effects come out of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from records import config_in, edit_manifest, trial, write_run
from scorecards import lived

import bench
from bench.common.errors import ResultsError
from bench.read.tables.contrasts import bootstrap_mean
from studies.boundary.study import GROWS, GROWS_BY_FAULT, LEVELS, BoundaryVerdict, ablations, exposures, verdicts
from studies.rises import interaction, main_effect, rises

DAMAGE = {("weak", "off"): 5.0, ("weak", "on"): 2.0, ("strong", "off"): 1.0, ("strong", "on"): 0.0}
"""(verifier, key) -> damage of an instance; of a second instance one more wherever the verifier is weak."""


@pytest.fixture
def trials() -> pd.DataFrame:
    rows = [
        (instance, verifier, key, damage + more * (verifier == "weak"))
        for instance, more in (("a", 0), ("b", 1))
        for (verifier, key), damage in DAMAGE.items()
    ]
    return pd.DataFrame(rows, columns=["instance", "verifier", "key", "damage"])


PAIRS = ["instance", "verifier", "key"]


def test_a_main_effect_is_the_mean_rise_over_all_cells_of_the_other_parts_by_instance(trials: pd.DataFrame) -> None:
    effect = main_effect(trials, "damage", "verifier", "weak", "strong", PAIRS)
    assert (effect.value, effect.instances) == (((5 - 1 + 2 - 0) / 2 + (6 - 1 + 3 - 0) / 2) / 2, 2)
    assert effect.low is not None and effect.high is not None and effect.low <= 3.0 and effect.high >= 4.0


def test_an_interaction_is_the_rise_beyond_the_sum(trials: pd.DataFrame) -> None:
    weak, strong = {"verifier": "weak", "key": "off"}, {"verifier": "strong", "key": "on"}
    assert interaction(trials, "damage", ("verifier", "key"), weak, strong, PAIRS).value == (5 - 1) - (2 - 0)
    assert interaction(trials, "damage", ("key", "verifier"), weak, strong, PAIRS).value == (5 - 2) - (1 - 0)


def test_a_trial_without_its_partner_is_no_evidence(trials: pd.DataFrame) -> None:
    lacking = trials.drop(index=trials[(trials["verifier"] == "strong") & (trials["key"] == "off")].index)
    assert main_effect(lacking, "damage", "verifier", "weak", "strong", PAIRS).value == (2 + 3) / 2


def test_without_spread_there_is_no_interval() -> None:
    assert bootstrap_mean({"a": 2.0, "b": 2.0}).low is None and bootstrap_mean({"a": 1.0}).high is None
    assert bootstrap_mean({}).value is None


def test_an_interval_does_not_depend_on_the_order_in_which_instances_were_recorded() -> None:
    values = {"a": 0.1, "b": 0.7, "c": 0.3, "d": 2.0}
    assert bootstrap_mean(values) == bootstrap_mean(dict(reversed(values.items())))


def test_a_run_whose_variants_cross_nothing_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [trial("mine", "none", 1)])
    entry = {"base": "state_machine", "strength": "none", "commit": "plain", "signal": "typed"}
    edit_manifest(tmp_path / "run", config={**config_in(tmp_path / "run"), "architecture": {"mine": entry}})
    with pytest.raises(ResultsError, match="needs variants that cross at least two levels"):
        ablations(bench.load_run(tmp_path / "run"))


def test_an_effect_is_over_the_pairs_that_could_differ_and_says_how_many(trials: pd.DataFrame) -> None:
    """Of each instance's two pairs only that without a key was rejected; the other differs all the same in instance b."""
    told = trials.assign(rejected=(trials["key"] == "off").astype(int))
    told.loc[told["key"] == "on", "damage"] = [0.0, 0.0, 1.0, 0.0]
    whole, over = (rises(told, "damage", "verifier", "weak", "strong", PAIRS, acted) for acted in (None, told["rejected"] > 0))
    assert (whole.pairs, whole.could_differ, over.pairs, over.could_differ) == (4, 4, 4, 3)
    assert whole.by_instance == {"a": 2.0, "b": 3.0} and over.by_instance == {"a": 4.0, "b": 3.0}
    never = rises(told.assign(damage=0.0), "damage", "verifier", "weak", "strong", PAIRS, told["rejected"] < 0)
    assert (never.could_differ, never.contrast.value, never.p) == (0, None, None)


CELLS = {
    "weak": {"strength": "none", "commit": "plain", "signal": "typed"},
    "unasked": {"strength": "business_rule", "approval": "never", "commit": "plain", "signal": "typed"},
    "asked": {"strength": "business_rule", "commit": "plain", "signal": "typed"},
    "keyed": {"strength": "none", "commit": "compare_and_swap", "signal": "typed"},
    "untold": {"strength": "none", "commit": "plain", "signal": "as_success"},
}


def planted(folder: Path, damage: dict[str, int], struck: tuple[int, int] = (2, 2), rejected: int = 0) -> list[BoundaryVerdict]:
    """The verdicts on a run of eight instances, whose trials have so much damage by cell and so many faults by error rate."""
    names = [f"case_{n}" for n in range(8)]
    records = [
        lived("crash", name, system=cell, model=model) for cell in CELLS for model in ("right", "errs") for name in names
    ]
    write_run(folder, records)
    models = {"right": {"kind": "simulated"}, "errs": {"kind": "simulated", "error_rate": 0.3}}
    entries = {name: {"base": "state_machine", **form} for name, form in CELLS.items()}
    edit_manifest(folder, models=models, config={**config_in(folder), "architecture": entries})
    run = bench.load_run(folder)
    trials = run.trials.assign(
        damage_doubled=[damage.get(name, 0) + n % 2 for n, name in enumerate(run.trials["architecture"])],
        faults_delivered=[struck[model == "errs"] for model in run.trials["model"]],
        rejections=rejected,
        waiting_for_people_minutes=[60 * (name == "asked") for name in run.trials["architecture"]],
    )
    told = replace(run, trials=trials)
    assert all(row.struck == struck[row.error_rate > 0] for row in exposures(told))
    return verdicts(told)


def test_approval_is_a_part_of_its_own_and_each_sentence_names_one_part(tmp_path: Path) -> None:
    by_sentence = {
        each.sentence: each for each in planted(tmp_path / "run", {"weak": 3, "unasked": 3, "untold": 3}, rejected=1)
    }
    checks, asking, commit, signal = list(by_sentence.values())[:4]
    assert list(LEVELS) == ["strength", "approval", "commit", "signal"]
    assert (checks.verdict, asking.verdict, commit.verdict, signal.verdict) == (
        "inconclusive",
        "holds",
        "holds",
        "cannot be decided with 8 instances (floor)",
    )
    assert checks.rises.contrast.value == pytest.approx(0.0, abs=1) and asking.rises.contrast.value == pytest.approx(3, abs=1)


def test_where_nothing_was_rejected_no_verdict_on_the_signal_is_given(tmp_path: Path) -> None:
    [signal] = [each for each in planted(tmp_path / "run", {}) if "reported as success" in each.sentence]
    assert signal.verdict == "not comparable" and signal.refused == "none of 16 pairs could have differed"


def test_trials_that_are_struck_less_bear_no_verdict_on_harm_in_all(tmp_path: Path) -> None:
    by_sentence = {each.sentence: each for each in planted(tmp_path / "run", {"weak": 2}, struck=(3, 1))}
    assert by_sentence[GROWS].verdict == "not comparable" and "3.00 and 1.00 faults a trial" in by_sentence[GROWS].refused
    assert not by_sentence[GROWS_BY_FAULT].refused
