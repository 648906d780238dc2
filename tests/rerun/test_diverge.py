"""How far two sides diverge is told beyond what each differs from itself, and the exit code says whether that is accepted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import run
from trials import ROOTS
from typer.testing import CliRunner

from bench.cli.commands.diverge import EXIT_CODES, DivergenceResult, DivergenceSide, SideMeans, compare_sides, lines_of
from bench.cli.main import app
from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import PACKS
from bench.read.tables.contrasts import BootstrapMean
from bench.rerun.divergence import Divergence
from bench.run.experiment.config import Config

MODELS: dict[str, dict[str, Any]] = {"right": {"kind": "simulated"}, "errs": {"kind": "simulated", "error_rate": 0.9}}


def config(**settings: Any) -> Config:
    values: dict[str, Any] = {
        "name": "apart",
        "scenarios": [f"contract_renewal/case_{number:02}" for number in range(1, 5)],
        "architectures": ["state_machine"],
        "models": list(MODELS),
        "plans": ["none"],
        "repetitions": 2,
        "seed": 20260601,
        "model": MODELS,
    }
    return Config.model_validate({**values, **settings})


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diverge") / "apart"
    run(config(), folder, PACKS)
    return folder


def side(folder: Path, model: str) -> DivergenceSide:
    return DivergenceSide(model, folder, "model", model)


def test_what_a_side_differs_from_itself_is_taken_off(apart: Path) -> None:
    measured = compare_sides(side(apart, "right"), side(apart, "errs")).divergence
    assert measured.form == "running"
    assert measured.between
    assert measured.within
    assert measured.between.value is not None
    assert measured.within.value is not None
    assert measured.beyond.value == pytest.approx(measured.between.value - measured.within.value)
    assert measured.between.value > 0.5


def test_a_side_does_not_diverge_from_itself(apart: Path) -> None:
    measured = compare_sides(side(apart, "right"), side(apart, "right"))
    assert measured.divergence.beyond.value == 0.0
    assert measured.interval[1] == pytest.approx(1 - 0.05**0.25)
    assert [measured.verdict(limit) for limit in (0.05, 0.6)] == ["inconclusive", "within"]


def test_the_first_effect_that_differs_is_named(apart: Path) -> None:
    measured = compare_sides(side(apart, "right"), side(apart, "errs"))
    lines = lines_of([side(apart, "right"), side(apart, "errs")], measured, 0.05)
    assert any("the first effect that differs" in line and "contract_renewal/case_" in line for line in lines)


def test_the_command_ends_with_0_within_the_limit_and_with_3_where_it_cannot_be_told(apart: Path) -> None:
    ended = [
        CliRunner().invoke(app, ["explain", "diverge", str(apart), "--json", "--limit", limit]) for limit in ("1.0", "0.3")
    ]
    assert [each.exit_code for each in ended] == [0, 3]
    assert [json.loads(each.output)["verdict"] for each in ended] == ["within", "inconclusive"]


def test_the_command_ends_with_1_beyond_the_limit(tmp_path: Path) -> None:
    models = {"right": MODELS["right"], "silent": {"kind": "simulated", "failure_rate": 1.0}}
    run(config(models=list(models), model=models), tmp_path / "run", PACKS)
    ended = CliRunner().invoke(app, ["explain", "diverge", str(tmp_path / "run"), "--limit", "0.3"])
    assert ended.exit_code == 1
    assert "Beyond the limit of 30.0%." in ended.output


def test_a_trial_costs_what_its_tokens_do_at_the_prices_that_are_given(tmp_path: Path) -> None:
    prices = {"price_in": 1.0, "price_out": 1.0}
    run(config(model={name: {**entry, **prices} for name, entry in MODELS.items()}), tmp_path / "run", PACKS)
    measured = compare_sides(side(tmp_path / "run", "right"), side(tmp_path / "run", "errs"))
    assert isinstance(measured.dollars, SideMeans)
    for tokens, dollars in zip(vars(measured.tokens).values(), vars(measured.dollars).values(), strict=True):
        assert dollars.value == pytest.approx(tokens.value / 1_000_000)
    these, those, more = (float(each.value) for each in vars(measured.tokens).values())
    assert more == pytest.approx(those - these)
    assert more > 0, "who errs is asked again"
    lines = lines_of([side(tmp_path / "run", name) for name in MODELS], measured, 0.05)
    assert any(line.startswith("  a trial costs ") and line.count("0.0") >= 3 for line in lines)


def test_without_prices_no_dollars_are_told(apart: Path) -> None:
    measured = compare_sides(side(apart, "right"), side(apart, "errs"))
    lines = lines_of([side(apart, "right"), side(apart, "errs")], measured, 0.05)
    assert "  its dollars are not known: the config gives 'right' no price_in and price_out" in lines


def test_a_prompt_in_other_words_changes_nothing_for_a_proposer_who_is_right(tmp_path: Path) -> None:
    scenarios = [f"contract_renewal{level}/case_{number:02}" for level in ("", ":epsilon_2") for number in range(1, 5)]
    run(config(scenarios=scenarios, models=["right"], model={"right": MODELS["right"]}), tmp_path / "run", PACKS)
    ended = CliRunner().invoke(app, ["explain", "diverge", str(tmp_path / "run"), "--of", "prompt", "--json", "--limit", "0.6"])
    document = json.loads(ended.output)
    assert (ended.exit_code, document["events"], document["beyond"]["value"]) == (0, 4, 0.0)
    assert document["sides"] == ["contract_renewal", "contract_renewal:epsilon_2"]
    assert document["tokens"]["more"]["value"] != 0, "other words are another number of tokens"


def test_two_tasks_are_no_two_prompts(tmp_path: Path) -> None:
    both = ["contract_renewal/case_01", "support_desk/case_01"]
    run(config(scenarios=both, models=["right"], model={"right": MODELS["right"]}), tmp_path / "run", PACKS)
    ended = CliRunner().invoke(app, ["explain", "diverge", str(tmp_path / "run"), "--of", "prompt"])
    assert isinstance(ended.exception, ConfigError)
    assert "contract_renewal and support_desk are two tasks" in str(ended.exception)


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [(0.02, 0.0, 0.04, "within"), (0.2, 0.1, 0.3, "beyond"), (0.1, 0.01, 0.2, "inconclusive"), (1.0, None, None, "beyond")],
)
def test_the_interval_decides_against_the_limit(value: float, low: float | None, high: float | None, verdict: str) -> None:
    none = BootstrapMean(0.0, None, None, 4)
    measured = Divergence("running", "", "", none, none, BootstrapMean(value, low, high, 4), 4)
    assert DivergenceResult(measured, SideMeans(none, none, none), "right", "").verdict(0.05) == verdict
    assert EXIT_CODES[verdict] == {"within": 0, "beyond": 1, "inconclusive": 3}[verdict]


def test_a_side_that_the_run_lacks_is_refused(apart: Path) -> None:
    ended = CliRunner().invoke(app, ["explain", "diverge", str(apart), "--between", "right", "--between", "other"])
    assert isinstance(ended.exception, ConfigError)
    assert str(ended.exception) == "model 'other': apart has none; it has right, errs"


@pytest.mark.parametrize(
    ("packs", "changed", "problem"),
    [
        (
            ROOTS,
            {"scenarios": ["tiny"], "architectures": ["static"], "model": {n: {"kind": "simulated"} for n in MODELS}},
            "effects",
        ),
        (PACKS, {"repetitions": 1}, "no instance in common that each ran twice"),
    ],
)
def test_a_run_that_cannot_be_compared_is_refused(
    packs: Sequence[Path], changed: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    run(config(**changed), tmp_path / "run", packs)
    with pytest.raises(ResultsError, match=problem):
        compare_sides(side(tmp_path / "run", "right"), side(tmp_path / "run", "errs"))


def test_a_log_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("no log")
    ended = CliRunner().invoke(app, ["explain", "diverge", str(tmp_path)])
    assert isinstance(ended.exception, ResultsError | ConfigError)
