"""The boundary's study: contrasts by hand, and a run that planted effects come out of."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from records import config_in, edit_manifest, trial, write_run

import bench
from bench.common.errors import ResultsError
from bench.read.tables.contrasts import contrast_of, interaction, main_effect
from studies.boundary.study import ablations

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
    assert contrast_of({"a": 2.0, "b": 2.0}).low is None and contrast_of({"a": 1.0}).high is None
    assert contrast_of({}).value is None


def test_an_interval_does_not_depend_on_the_order_in_which_instances_were_recorded() -> None:
    values = {"a": 0.1, "b": 0.7, "c": 0.3, "d": 2.0}
    assert contrast_of(values) == contrast_of(dict(reversed(values.items())))


def test_a_run_whose_variants_cross_nothing_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [trial("mine", "none", 1)])
    entry = {"base": "state_machine", "strength": "none", "commit": "plain", "signal": "typed"}
    edit_manifest(tmp_path / "run", config={**config_in(tmp_path / "run"), "architecture": {"mine": entry}})
    with pytest.raises(ResultsError, match="needs variants that cross at least two levels"):
        ablations(bench.load_run(tmp_path / "run"))
