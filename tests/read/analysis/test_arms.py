"""Arms of packs with several instances: trials are paired by instance and repetition, and each instance counts once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from records import called, id_of, run_of, smooth, trial

import bench
from bench.read.analysis.arms import Arm, Condition, arms_of, instances_by_scenario, missing_trials
from bench.read.analysis.frames import Run
from bench.read.analysis.per_solved import spent_per_solved
from bench.read.analysis.results import Results
from bench.read.analysis.statistics import amount_of, mean_of
from bench.read.report.page import page_of
from bench.read.report.tables import all_tables

Tokens = Mapping[str, Sequence[int]]
"""Instance -> the tokens of its repetitions."""


def run_with(folder: Path, by_architecture: Mapping[str, Tokens]) -> Run:
    """A run without faults; each instance's repetitions are counted from 1."""
    records, instances = [], {}
    for architecture, by_instance in by_architecture.items():
        for instance, values in by_instance.items():
            for repetition, tokens in enumerate(values, 1):
                name = f"{architecture}-{instance}-{repetition}"
                events = [*smooth()[:-1], called(3, "b", tokens=(tokens - 240, 0), cause="retry"), smooth()[-1]]
                records.append(trial(architecture, "none", repetition, events=events, id=name))
                instances[id_of(name)] = instance
    run = run_of(folder, records)
    return replace(run, trials=run.trials.assign(instance=[instances[name] for name in run.trials["trial"]]))


def arms(run: Run) -> Mapping[str, Arm]:
    return arms_of(run)[Condition("demo", "m", "none")]


def test_a_mean_over_several_instances_is_of_their_means(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"static": {"a": [1000, 1100, 1050], "b": [3000], "c": [2000, 2200]}})
    assert arms(run)["static"].mean("tokens") == amount_of([1050.0, 3000.0, 2100.0])
    assert instances_by_scenario(run) == {"demo": ["a", "b", "c"]}


def test_a_sole_instance_is_as_if_there_were_no_instances(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"static": {"": [1000, 1100, 1050]}, "mine": {"": [900, 1000, 1200]}})
    without = replace(run, trials=run.trials.drop(columns="instance"))
    tables = [all_tables(Results(each)) for each in (run, without)]
    assert tables[0] == tables[1] and instances_by_scenario(run) == {"demo": [""]}
    assert arms(run)["static"].mean("tokens") == amount_of([1000.0, 1100.0, 1050.0])


def test_the_same_repetition_of_another_instance_is_no_pair(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"static": {"a": [1000, 1100], "b": [5000]}, "mine": {"a": [1010, 1110], "c": [700]}})
    less = arms(run)["mine"].minus(arms(run)["static"], "tokens")
    assert (less.pairs, less.unpaired, less.difference.mean) == (2, 2, 10.0)


def test_a_paired_difference_counts_each_instance_once(tmp_path: Path) -> None:
    static: Tokens = {"a": [1000] * 10, "b": [2000], "c": [3000]}
    mine: Tokens = {"a": [1010] * 10, "b": [2100], "c": [3400]}
    result = arms(run_with(tmp_path / "run", {"static": static, "mine": mine}))
    less = result["mine"].minus(result["static"], "tokens")
    assert (less.difference, less.pairs) == (mean_of([10.0, 100.0, 400.0]), 12)
    gap = result["mine"].solved_minus(result["static"])
    assert (gap.pairs, gap.difference) == (12, 0.0)


def test_what_a_solved_task_costs_is_bounded_by_instances(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"static": {"a": [1000] * 20, "b": [2000] * 20, "c": [1500] * 20}})
    few = run_with(tmp_path / "few", {"static": {"a": [1000], "b": [2000], "c": [1500]}})
    first, other = (spent_per_solved(each.trials, "tokens") for each in (run, few))
    assert first.value == other.value == 1500
    assert (first.low, first.high) == pytest.approx((other.low, other.high))


def test_a_missing_repetition_of_any_instance_is_missing(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"static": {"a": [1000, 1100], "b": [3000]}})
    assert missing_trials(run) == 1


def test_a_plan_for_some_packs_is_missing_on_no_other() -> None:
    run = bench.load_run(Path(__file__).parents[3] / "results" / "papers_event-simulated")
    assert set(run.config.plans) == {"none", "validation", "paper"}
    assert run.config.plans_on("k8s_oomkill:paper_sized") == ("none", "paper")
    assert missing_trials(run) == 0
    assert missing_trials(replace(run, trials=run.trials.iloc[1:])) == 1


def test_an_instance_that_the_config_names_is_not_missing_once_it_is_recorded(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"static": {"a": [1000], "b": [3000]}})
    config = run.config.model_copy(update={"scenarios": ("demo/a", "demo/b", "demo/c")})
    named = replace(run, manifest=run.manifest.model_copy(update={"config": config}))
    assert missing_trials(named) == 1, "c alone"


@pytest.mark.parametrize(("named", "missing"), [(("demo:plain",), 0), (("demo:plain/a",), 0), (("demo:other",), 1)])
def test_a_default_variant_that_the_config_names_in_full_is_not_missing(
    tmp_path: Path, named: tuple[str, ...], missing: int
) -> None:
    run = run_with(tmp_path / "run", {"static": {"a": [1000]}})
    config = run.config.model_copy(update={"scenarios": named})
    pack = run.pack("demo").model_copy(update={"variant": "plain"})
    manifest = run.manifest.model_copy(update={"config": config, "scenarios": {"demo": pack}})
    assert missing_trials(replace(run, manifest=manifest)) == missing


def test_the_page_says_of_what_its_intervals_speak(tmp_path: Path) -> None:
    several = run_with(tmp_path / "several", {"static": {"a": [1000, 1100], "b": [3000, 3100]}})
    sole = run_with(tmp_path / "sole", {"static": {"": [1000, 1100]}})
    pages = [page_of(Results(run), [], []) for run in (several, sole)]
    assert any("intervals cluster by instance" in limit for limit in pages[0].summary.limits)
    assert any("intervals hold for repetitions of that task alone" in limit for limit in pages[1].summary.limits)
    assert dict(pages[0].facts)["Trials"].startswith("4; N = 4")
