"""Runs that met the same faults make one report, of what they share; runs that share nothing make none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import UNDRAWN, workplace
from commands import bench as command
from records import config_in, edit_manifest, experiment, run_of, trial, with_manifest, write_run

import bench
from bench.common.errors import ResultsError
from bench.read.analysis.arms import Condition, arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.merge import merge, records_of
from bench.read.analysis.results import Results
from bench.read.render.labels import model_label
from bench.read.report.page import as_markdown, page_of
from bench.read.report.tables import all_tables
from bench.record.record import TrialRecord


def of_model(model: str, repetitions: int = 3) -> list[TrialRecord]:
    return [
        trial(record.architecture, record.plan, record.repetition, model=model, scenario=scenario)
        for scenario in ("demo", "apart")
        for record in experiment(repetitions=repetitions)
    ]


def run(folder: Path, model: str, repetitions: int = 3, **changes: Any) -> Run:
    """A run on one model, named after it; `config` adds to its config."""
    write_run(folder / model, of_model(model, repetitions))
    config = {**config_in(folder / model), **changes.get("config", {})}
    edit_manifest(folder / model, name=model, **{**changes, "config": config})
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
    assert all_tables(Results(apart)) == all_tables(Results(whole))
    assert apart.names("model") == ["small", "big"]


def test_one_run_is_itself(tmp_path: Path) -> None:
    alone = run(tmp_path, "small")
    assert merge([alone]) is alone


OTHER = {"asked": "another"}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"config": {"seed": 2}}, "they differ in the seed (1 | 2)"),
        ({"tokenizer": "words"}, "they differ in the tokenizer ( | words)"),
        (
            {"scenarios": {"demo": OTHER, "apart": OTHER}},
            "the pack demo (its versions differ); the pack apart (its versions differ); of the packs differ apart: subtasks, "
            "apart: variant, demo: subtasks, demo: variant. A version changes with a document, a prompt, a schema, the code of "
            "a check: record the older run again with the installed version, by bench run CONFIG --name NAME",
        ),
        (
            {"scenarios": {pack: {**OTHER, "document_tokens": 7} for pack in ("demo", "apart")}, "code": {"digest": "older"}},
            "the pack demo (its versions differ); the pack apart (its versions differ); of the packs differ apart: "
            "document_tokens, apart: subtasks, apart: variant, demo: document_tokens, demo: subtasks, demo: variant. A version "
            "changes with a document, a prompt, a schema, the code of a check"
            ", and the code of the benchmark is another too: record the older run again with the installed version, by bench "
            "run CONFIG --name NAME",
        ),
    ],
)
def test_runs_that_share_nothing_are_refused_by_what_differs(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    assert refusal(run(tmp_path, "small"), run(tmp_path, "big", **changes)) == f"small and big share no trial: {what}"


def test_runs_of_other_packs_or_plans_are_refused_by_their_names(tmp_path: Path) -> None:
    run = run_of(tmp_path / "one", [trial(plan="paper")])
    packs = run_of(tmp_path / "two", [trial(plan="paper", scenario="other")])
    text = "by-hand and by-hand 2 share no trial: the "
    assert refusal(run, packs) == f"{text}pack demo (only in by-hand); the pack other (only in by-hand 2)"
    plans = run_of(tmp_path / "three", [trial(plan="storm")])
    assert refusal(run, plans) == f"{text}fault plan paper (only in by-hand); the fault plan storm (only in by-hand 2)"


def test_what_not_all_runs_have_is_named_and_left_out(tmp_path: Path) -> None:
    ours = run_of(tmp_path / "ours", [*of_model("m"), trial(plan="storm")])
    records = [trial("mine", "paper", n, scenario=pack) for n in (1, 2, 3) for pack in ("demo", "apart", "own")]
    mine = write_run(tmp_path / "mine", records)
    packs = json.loads((mine / "manifest.json").read_text())["scenarios"]
    edit_manifest(mine, name="mine", scenarios={**packs, "apart": {"asked": "another"}})
    both = merge([ours, bench.load_run(mine)])
    assert both.notes == (
        "Only what all runs share is shown. Left out: the pack apart (its versions differ); the pack own (only in mine); "
        "the fault plan none (only in by-hand); the fault plan storm (only in by-hand).",
    )
    assert (both.names("scenario"), both.names("plan"), both.config.plans) == (["demo"], ["paper"], ("paper",))
    for frame in (both.trials, both.calls, both.faults, both.replies, both.recoveries):
        assert set(frame["scenario"]) == {"demo"} and set(frame["plan"]) == {"paper"}
    assert f"**{both.notes[0]}**" in as_markdown(page_of(Results(both), [], []))


def test_a_plan_that_does_another_thing_and_instances_of_which_only_one_run_has_some_are_left_out(tmp_path: Path) -> None:
    first, two = (
        run(tmp_path, "small"),
        run(tmp_path, "big", config={"plan": {"paper": {"faults": [{"point": "output", "effect": "another"}]}}}),
    )
    assert (
        merge([first, two]).names("plan") == ["none"]
        and "the fault plan paper (its versions differ)" in merge([first, two]).notes[0]
    )
    digests = {"a": "1", "b": "2", "c": "3"}
    runs = []
    for name, architecture, instances in (("many", "static", "abc"), ("few", "mine", "ab")):
        folder = write_run(
            tmp_path / name, [trial(architecture, instance=instance, id=f"{name}{instance}") for instance in instances]
        )
        pack = {
            "asked": name,
            "asked_by_instance": {instance: digests[instance] for instance in instances},
            "instances": list(instances),
        }
        edit_manifest(folder, scenarios={"demo": {**pack, "variant": "small"}})
        runs.append(bench.load_run(folder))
    both = merge(runs)
    assert both.notes == ("Only what all runs share is shown. Left out: 1 instances of the pack demo (not all have them).",)
    assert set(both.trials["instance"]) == {"a", "b"} and both.pack("demo").instances == ("a", "b")


def test_settings_that_differ_are_said_and_models_of_other_settings_have_names_of_their_own(tmp_path: Path) -> None:
    both = merge([run(tmp_path, "small"), run(tmp_path, "big", config={"max_attempts": 5})])
    assert both.notes == ("These runs differ in the config's max_attempts, so that a difference may be that one's alone.",)
    other = run_of(tmp_path / "other", of_model("small"))
    settings = {"small": {"kind": "simulated", "failure_rate": 0.5}}
    other = with_manifest(other, models=settings)
    both = merge([run(tmp_path / "again", "small"), other])
    assert both.names("model") == ["small", "small (by-hand)"]
    assert both.parameters_of("small (by-hand)").shown == settings["small"]
    assert model_label(both, "small (by-hand)") == "small (by-hand) (SIMULATED)"


def test_a_model_whose_replies_were_taken_over_from_an_earlier_run_is_the_same_model(tmp_path: Path) -> None:
    taken = [{"name": "earlier", "digest": "d"}]
    first = run(tmp_path, "small", models={"small": {"kind": "openai", "cache": True}})
    settings = {"small": {"kind": "openai", "cache": True, "cache_from": taken}}
    second = run_of(
        tmp_path / "two", [replace(record, architecture=f"my_{record.architecture}") for record in of_model("small")]
    )
    both = merge([first, with_manifest(second, models=settings)])
    assert both.names("model") == ["small"] and both.parameters_of("small").shown == settings["small"]


def test_the_order_of_names_in_a_config_makes_no_other_experiment(tmp_path: Path) -> None:
    turned = run(tmp_path, "big", config={"plans": ["paper", "none"]})
    assert merge([run(tmp_path, "small"), turned]).names("plan") == ["none", "paper"]


def test_a_key_that_the_format_did_not_have_yet_stood_at_its_default(tmp_path: Path) -> None:
    run(tmp_path, "small")
    config = config_in(tmp_path / "small")
    del config["repair"]
    edit_manifest(tmp_path / "small", config=config)
    older = bench.load_run(tmp_path / "small")
    merge([older, run(tmp_path, "big", config={"repair": "reason"})])
    assert "config's repair" in merge([older, run(tmp_path, "large", config={"repair": "none"})]).notes[0]


def test_what_one_run_holds_twice_over_counts_once(tmp_path: Path) -> None:
    shared = run(tmp_path, "small", config={"repetitions": 9})
    twice = merge([shared, with_manifest(shared, name="copy")])
    assert twice.trials.equals(shared.trials) and twice.calls.equals(shared.calls)
    assert twice.notes == ("24 trials of copy stand in an earlier run as well, the same records: they count once.",)


def test_an_architecture_that_went_otherwise_in_a_second_run_stands_there_under_a_name_of_its_own(tmp_path: Path) -> None:
    """Also where the trials' ids are the same: those of a system of somebody's own say nothing of its code."""
    before = run_of(tmp_path / "before", experiment())
    changed = [replace(record, framework_seconds=9.0) if record.architecture == "static" else record for record in experiment()]
    edit_manifest(write_run(tmp_path / "after", changed), name="after")
    both = merge([before, bench.load_run(tmp_path / "after")])
    assert both.names("architecture") == ["monolithic", "static", "static (after)"]
    assert len(both.trials) == 18 == both.trials["trial"].nunique()
    arms = arms_of(both)[Condition("demo", "m", "paper")]
    assert arms["static (after)"].mean("framework_seconds").mean == 9.0
    assert (both.config.base("static (after)"), arms["static (after)"].minus(arms["static"], "tokens").pairs) == ("static", 3)
    calls = both.calls.groupby("trial").size()
    assert set(calls.index) == set(both.trials["trial"]) and set(calls) == {2, 3}
    records = {record.id: record for record in records_of(both) or ()}
    assert list(records) != [] and records.keys() == set(both.trials["trial"])
    assert {record.architecture for id_, record in records.items() if id_.endswith(" (after)")} == {"static (after)"}
    assert {record.framework_seconds for record in records.values() if record.architecture == "static (after)"} == {9.0}


def test_my_system_stands_beside_theirs_paired_trial_by_trial(tmp_path: Path) -> None:
    """What `bench serve` records has one architecture, and may have one scenario and plan of the config."""
    theirs = run_of(tmp_path / "theirs", [record for record in of_model("m") if record.scenario == "demo"])
    mine = run_of(tmp_path / "mine", [trial("mine", "paper", n, id=f"mine{n}") for n in (1, 2, 3)])
    both = merge([theirs, mine])
    assert both.names("architecture") == ["monolithic", "static", "mine"]
    arms = arms_of(both)[Condition("demo", "m", "paper")]
    assert list(arms) == ["monolithic", "static", "mine"]
    less = arms["mine"].minus(arms["static"], "tokens")
    assert (less.pairs, less.unpaired) == (3, 0)
    [table] = [table for table in all_tables(Results(both)) if table.name == "differences"]
    assert "mine − static" in [row[3] for row in table.rows]


def test_merged_rows_stand_in_the_order_of_one_run(tmp_path: Path) -> None:
    records = of_model("m")
    parted = [
        run_of(tmp_path / name, [record for record in records if record.architecture == name])
        for name in ("monolithic", "static")
    ]
    whole = run_of(tmp_path / "whole", records)
    assert merge(parted).trials.equals(whole.trials) and merge(parted).calls.equals(whole.calls)


def test_a_variant_that_means_another_thing_in_each_run_has_two_names(tmp_path: Path) -> None:
    variants = [{"architecture": {"static": {"base": base}}} for base in ("static", "monolithic")]
    both = merge([run(tmp_path, name, config=config) for name, config in zip(("small", "big"), variants, strict=True)])
    assert both.names("architecture") == ["monolithic", "static", "static (big)"]
    assert (both.config.base("static"), both.config.base("static (big)")) == ("static", "monolithic")
    digests = [{"architecture": {"mine": {"base": "my:mine"}}} for _ in range(2)]
    runs = [run_of(tmp_path / name, [trial("mine", model=name)]) for name in ("one", "two")]
    apart = [
        with_manifest(run, config={**config_in(run.folder or tmp_path), **more}, architectures={"mine": digest})
        for run, more, digest in zip(runs, digests, ("1", "2"), strict=True)
    ]
    assert merge(apart).names("architecture") == ["mine", "mine (by-hand 2)"], "code of somebody's own was edited"


def test_the_report_names_each_run_its_dates_and_its_code(tmp_path: Path) -> None:
    code = {"version": "0.1.0", "commit": None, "digest": "d1ff"}
    both = merge([run(tmp_path, "small"), run(tmp_path, "big", 2, code=code)])
    page = as_markdown(page_of(Results(both), [], []))
    title = "big (SIMULATED) solved as many as small (SIMULATED), 8 of 8 trials, at 1.00 times the tokens: undecided"
    assert page.startswith(f"# {title}\n\nReport of runs small + big\n")
    assert re.search(r"- Code: small: version .*digest c0de of its bytes; big: version .*digest d1ff of its bytes", page)
    assert "made by different code" in page and "small by c0de, big by d1ff" in page
    assert "N = 2 to 3" in page and "not recorded" not in page, "each run is whole by its own config"


def test_trials_missing_from_one_of_the_runs_are_said(tmp_path: Path) -> None:
    both = merge([run(tmp_path, "small"), run(tmp_path, "big", config={"repetitions": 4})])
    assert "8 trials are not recorded" in as_markdown(page_of(Results(both), [], []))


def test_the_command_reports_several_runs_into_a_folder_named_after_all(tmp_path: Path) -> None:
    config = workplace(tmp_path, tables='[model.other]\nkind = "simulated"\nfailure_rate = 0.5\n')
    for model in ("simulated", "other"):
        assert command(tmp_path, "run", str(config), "--model", model)[0] == 0
    code, out, err = command(tmp_path, "report", "small-simulated", "small-other", **UNDRAWN)
    assert (code, err) == (0, "") and "reports/small-simulated+small-other" in out
    assert (tmp_path / "reports" / "small-simulated+small-other" / "tables" / "models_together.md").is_file()
    config.write_text(config.read_text().replace("seed = 1", "seed = 2"))
    assert command(tmp_path, "run", str(config), "--model", "other", "--name", "later")[0] == 0
    code, _, err = command(tmp_path, "report", "small-simulated", "later")
    assert (code, err) == (
        2,
        "bench: small-simulated and later share no trial: they differ in the seed (1 | 2)\n",
    )


def test_several_models_are_named_on_the_command_line_each_once(tmp_path: Path) -> None:
    config = workplace(tmp_path, tables='[model.other]\nkind = "simulated"\n')
    both = ("--model", "simulated", "--model", "other")
    code, out, _ = command(tmp_path, "run", str(config), *both)
    assert code == 0 and "16 trials" in out
    assert (tmp_path / "results" / "small-simulated-other" / "trials.jsonl").is_file()
    code, _, err = command(tmp_path, "run", str(config), "--model", "other", "--model", "other")
    assert code == 2 and err == f"bench: {config}: models: 'other' appears twice\n"
