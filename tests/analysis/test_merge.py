"""Runs of one experiment on different models make one report; runs of different experiments make none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from commands import bench as command
from commands import workplace
from records import edit_manifest, experiment, run_of, trial, write_run

import bench
from bench.analysis.arms import Condition, arms_of
from bench.analysis.claims.published import load_published
from bench.analysis.frames import Run
from bench.analysis.merge import merge
from bench.errors import ResultsError
from bench.experiment.record import TrialRecord
from bench.report.page import as_markdown, page_of
from bench.report.tables import all_tables


def of_model(model: str, repetitions: int = 3) -> list[TrialRecord]:
    return [
        trial(one.architecture, one.plan, one.repetition, model=model, scenario=scenario)
        for scenario in ("demo", "apart")
        for one in experiment(repetitions=repetitions)
    ]


def run(folder: Path, model: str, repetitions: int = 3, **changes: Any) -> Run:
    """A run on one model, named after it; `config` adds to its config."""
    write_run(folder / model, of_model(model, repetitions))
    written = bench.load_run(folder / model).manifest
    edit_manifest(folder / model, name=model, **{**changes, "config": {**written["config"], **changes.get("config", {})}})
    return bench.load_run(folder / model)


def refusal(*runs: Run) -> str:
    with pytest.raises(ResultsError) as refused:
        merge(runs)
    return str(refused.value)


def test_two_runs_have_the_tables_that_one_run_on_both_models_has(tmp_path: Path) -> None:
    apart = merge([run(tmp_path, "small"), run(tmp_path, "big")])
    write_run(tmp_path / "whole", [*of_model("small"), *of_model("big")])
    whole = bench.load_run(tmp_path / "whole")
    assert apart.trials.equals(whole.trials) and apart.calls.equals(whole.calls) and apart.faults.equals(whole.faults)
    assert all_tables(apart, arms_of(apart), load_published(), ()) == all_tables(whole, arms_of(whole), load_published(), ())
    assert apart.names("model") == ["small", "big"]


def test_one_run_is_itself(tmp_path: Path) -> None:
    alone = run(tmp_path, "small")
    assert merge([alone]) is alone


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"config": {"seed": 2}}, "the config's seed"),
        ({"config": {"max_attempts": 5}}, "the config's max_attempts"),
        ({"config": {"plan": {"none": {"faults": []}, "paper": {"faults": []}}}}, "what the fault plan paper does"),
        ({"scenarios": {"demo": {"asked": "another"}, "apart": {"asked": "5cede5cede5c"}}}, "the version of the pack demo"),
        ({"scenarios": {"other": {"asked": "d"}}}, "their packs (demo, apart | other)"),
        ({"models": {"small": {"kind": "simulated", "failure_rate": 0.5}}}, "the settings of model small"),
        ({"tokenizer": "words"}, "the tokenizer for tokens"),
    ],
)
def test_runs_of_different_experiments_are_refused_by_what_differs(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    said = refusal(run(tmp_path, "small"), run(tmp_path, "big", **changes))
    assert said == f"small and big are no runs of one experiment: they differ in {what}"


def test_the_order_of_names_in_a_config_makes_no_other_experiment(tmp_path: Path) -> None:
    turned = run(tmp_path, "big", config={"plans": ["paper", "none"]})
    assert merge([run(tmp_path, "small"), turned]).names("fault") == ["none", "paper"]


def test_a_key_that_the_format_did_not_have_yet_stood_at_its_default(tmp_path: Path) -> None:
    older = run(tmp_path, "small")
    assert "repair" not in older.manifest["config"]
    merge([older, run(tmp_path, "big", config={"repair": "reason"})])
    assert "config's repair" in refusal(older, run(tmp_path, "large", config={"repair": "none"}))


def test_an_architecture_that_met_a_model_in_two_runs_is_refused_also_behind_a_third(tmp_path: Path) -> None:
    shared = run(tmp_path, "small", config={"repetitions": 9})
    assert "both hold trials of monolithic with the model 'small'" in refusal(shared, shared)
    assert "both hold trials of monolithic with the model 'small'" in refusal(run(tmp_path, "big"), shared, shared)


def test_my_system_stands_beside_theirs_paired_trial_by_trial(tmp_path: Path) -> None:
    """What `bench serve` records has one architecture, and may have one scenario and plan of the config."""
    theirs = run_of(tmp_path / "theirs", [one for one in of_model("m") if one.scenario == "demo"])
    mine = run_of(tmp_path / "mine", [trial("mine", "paper", n, id=f"mine{n}") for n in (1, 2, 3)])
    both = merge([theirs, mine])
    assert both.names("architecture") == ["monolithic", "static", "mine"]
    arms = arms_of(both)[Condition("demo", "m", "paper")]
    assert list(arms) == ["monolithic", "static", "mine"]
    less = arms["mine"].less(arms["static"], "tokens")
    assert (less.pairs, less.unpaired) == (3, 0)
    [table] = [table for table in all_tables(both, arms_of(both), load_published(), ()) if table.name == "differences"]
    assert "mine − static" in [row[3] for row in table.rows]
    assert both.manifest["config"]["plans"] == ["none", "paper"]


def test_merged_rows_stand_in_the_order_of_one_run(tmp_path: Path) -> None:
    records = of_model("m")
    parted = [
        run_of(tmp_path / name, [one for one in records if one.architecture == name]) for name in ("monolithic", "static")
    ]
    whole = run_of(tmp_path / "whole", records)
    assert merge(parted).trials.equals(whole.trials) and merge(parted).calls.equals(whole.calls)


def test_a_variant_that_means_another_thing_in_each_run_is_refused(tmp_path: Path) -> None:
    variants = [{"architecture": {"static": {"base": base}}} for base in ("static", "monolithic")]
    runs = [run(tmp_path, name, config=config) for name, config in zip(("small", "big"), variants, strict=True)]
    assert refusal(*runs) == "small and big are no runs of one experiment: they differ in what the architecture static is"


def test_the_report_names_each_run_its_dates_and_its_code(tmp_path: Path) -> None:
    code = {"version": "0.1.0", "commit": None, "digest": "d1ff"}
    both = merge([run(tmp_path, "small"), run(tmp_path, "big", 2, code=code)])
    page = as_markdown(page_of(both, [], [], load_published()))
    assert page.startswith("# Report of runs small + big\n")
    assert re.search(r"- Code: small: version .*digest c0de; big: version .*digest d1ff", page)
    assert "made by different code" in page and "small by c0de, big by d1ff" in page
    assert "N = 2 to 3" in page and "not recorded" not in page, "each run is whole by its own config"


def test_trials_missing_from_one_of_the_runs_are_said(tmp_path: Path) -> None:
    both = merge([run(tmp_path, "small"), run(tmp_path, "big", config={"repetitions": 4})])
    assert "8 trials are not recorded" in as_markdown(page_of(both, [], [], load_published()))


def test_the_command_reports_several_runs_into_a_folder_named_after_all(tmp_path: Path) -> None:
    config = workplace(tmp_path, tables='[model.other]\nkind = "simulated"\nfailure_rate = 0.5\n')
    for model in ("simulated", "other"):
        assert command(tmp_path, "run", str(config), "--model", model)[0] == 0
    code, out, err = command(tmp_path, "report", "small-simulated", "small-other")
    assert (code, err) == (0, "") and "reports/small-simulated+small-other" in out
    assert (tmp_path / "reports" / "small-simulated+small-other" / "tables" / "models.md").is_file()
    config.write_text(config.read_text().replace("seed = 1", "seed = 2"))
    assert command(tmp_path, "run", str(config), "--model", "other", "--name", "later")[0] == 0
    code, _, err = command(tmp_path, "report", "small-simulated", "later")
    assert (code, err) == (
        2,
        "bench: small-simulated and later are no runs of one experiment: they differ in the config's seed\n",
    )


def test_several_models_are_named_on_the_command_line_each_once(tmp_path: Path) -> None:
    config = workplace(tmp_path, tables='[model.other]\nkind = "simulated"\n')
    both = ("--model", "simulated", "--model", "other")
    code, out, _ = command(tmp_path, "run", str(config), *both)
    assert code == 0 and "16 trials" in out
    assert (tmp_path / "results" / "small-simulated-other" / "trials.jsonl").is_file()
    code, _, err = command(tmp_path, "run", str(config), "--model", "other", "--model", "other")
    assert code == 2 and err == f"bench: {config}: models: 'other' stands twice\n"
