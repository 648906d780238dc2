"""A policy is learned from a run's rejections, whatever the order of its trials, and told with what it is judged on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from experiment_runs import config, run, run_matrix_in
from trials import ROOTS

from bench.common.errors import ConfigError, ResultsError
from bench.read.analysis.frames import load_run
from bench.record.policy import PackPolicy, read_policy
from bench.record.reading import read_manifest, read_trials
from bench.record.record import TrialRecord
from bench.rerun.learning import learn, learn_pack
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.session import Session
from studies.learning.study import Payoff, break_even_by_rejections, tables
from studies.rises import Rises

CONFIGS = Path(__file__).parents[2] / "studies" / "learning"
MODEL = {"kind": "simulated"}
STORE = [{"point": "output", "effect": "missing_field", "probability": 0.6, "subtask": "store"}]
NEVER: dict[str, Any] = {"none": {"faults": []}}
OFTEN: dict[str, Any] = {"often": {"faults": STORE}}


def settings(plans: dict[str, Any], **more: Any) -> Config:
    asked = {"scenarios": ["orchard"], "architectures": ["runtime_structured"], "repetitions": 8}
    return config(MODEL, **{**asked, "plans": list(plans), "plan": plans, **more})


def taught(folder: Path, plan: str, trials: list[TrialRecord]) -> PackPolicy:
    under_plan = [trial for trial in trials if trial.plan == plan]
    return learn_pack("orchard", read_manifest(folder), under_plan, ROOTS, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs") / "taught"
    run(settings({**NEVER, **OFTEN}), made)
    return made


def test_where_nothing_is_rejected_neighbours_share_a_call_and_where_one_often_is_it_stands_alone(folder: Path) -> None:
    assert len(learn(folder, ROOTS, "runtime_structured", "none").packs["orchard"].calls) == 1
    assert learn(folder, ROOTS, "runtime_structured", "often").packs["orchard"].calls[-1] == ("store",)


def test_a_rejection_counts_once_for_each_first_reply(folder: Path) -> None:
    replies = learn(folder, ROOTS, "runtime_structured", "often").packs["orchard"].first_replies
    trials = [trial for trial in read_trials(folder) if trial.plan == "often"]
    assert (replies["apples"].rejected, replies["apples"].of) == (0, len(trials))
    assert 0 < replies["store"].rejected < replies["store"].of == len(trials)


def test_the_order_of_trials_and_a_trial_that_stands_twice_change_nothing(folder: Path) -> None:
    trials = list(read_trials(folder))
    once = taught(folder, "often", trials)
    for seed in range(3):
        mixed = [*trials, *trials[:5]]
        random.Random(seed).shuffle(mixed)
        assert taught(folder, "often", mixed) == once


def test_it_is_learned_on_the_instances_that_are_drawn_alone(folder: Path) -> None:
    whole = learn(folder, ROOTS, "runtime_structured", "often").packs["orchard"]
    half = learn(folder, ROOTS, "runtime_structured", "often", count=1).packs["orchard"]
    assert len(half.instances) == 1 < len(whole.instances) and set(half.instances) < set(whole.instances)
    assert half.first_replies["store"].of * len(whole.instances) == whole.first_replies["store"].of


def test_a_run_that_stopped_is_refused_and_once_gone_on_with_teaches_what_one_at_a_stretch_does(
    folder: Path, tmp_path: Path
) -> None:
    matrix, stopped, ended = build_matrix(settings({**NEVER, **OFTEN}), ROOTS, "code"), tmp_path / "stopped", Session()
    ended.end("enough")
    run_matrix_in(matrix, stopped, ended)
    with pytest.raises(ResultsError, match="is not complete, and what is learned of it would depend on its end"):
        learn(stopped, ROOTS, "runtime_structured", "often")
    run_matrix_in(matrix, stopped)
    whole, resumed = (learn(run_folder, ROOTS, "runtime_structured", "often") for run_folder in (folder, stopped))
    assert resumed.packs == whole.packs and resumed.identity == whole.identity


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"architecture": "statics"}, "run 'taught' has no architecture 'statics'"),
        ({"plan": "seldom"}, "run 'taught' has no fault plan 'seldom'"),
        ({"model": "large"}, "run 'taught' has no model 'large'"),
    ],
)
def test_what_the_run_does_not_have_is_refused(folder: Path, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        learn(folder, ROOTS, **dict[str, Any](architecture="runtime_structured", plan="often") | changed)


def test_a_run_that_asks_for_no_subtask_alone_teaches_nothing(tmp_path: Path) -> None:
    run(settings(NEVER, architectures=["monolithic"], repetitions=1), tmp_path / "joint")
    with pytest.raises(ResultsError, match="no first reply for 'apples' alone was verified; learn from an architecture with"):
        learn(tmp_path / "joint", ROOTS, "monolithic", "none")


@pytest.mark.slow
def test_the_committed_policy_is_what_its_config_teaches(tmp_path: Path) -> None:
    run(load_config(CONFIGS / "learning.toml", {}), tmp_path / "learning")
    kept, now = read_policy(CONFIGS / "learned.json"), learn(tmp_path / "learning", ROOTS, "runtime_structured", "failing")
    assert now.packs == kept.packs


def test_the_report_tells_what_was_learned_on_which_instances_and_on_which_it_is_judged(tmp_path: Path) -> None:
    judged = load_config(CONFIGS / "config.toml", {"instances": 1, "plans": ["none"], "scenarios": ["incidents"]})
    run(judged, tmp_path / "learned")
    loaded = load_run(tmp_path / "learned")
    table, pays = tables(loaded)
    [row] = table.rows
    assert [row[4] for row in pays.rows] == ["monolithic", "static", "runtime_structured"]
    policy = loaded.manifest.policies["learned"].packs["incidents"]
    cells = dict(zip(table.columns, row, strict=True))
    assert cells["Training instances"] == f"10: {', '.join(policy.instances)}"
    [instance] = loaded.trials["instance"].unique()
    assert cells["Fresh instances"] == f"1: {instance}" and instance not in policy.instances


def test_a_run_without_a_policy_has_no_such_table(folder: Path) -> None:
    with pytest.raises(ResultsError, match="needs an architecture with a learned policy"):
        list(tables(load_run(folder)))


def spread(sign: int) -> Rises:
    return Rises({f"case_{number}": sign * (1.0 + number) for number in range(8)}, 8, 8)


@pytest.mark.parametrize(
    ("tokens", "solved", "p", "verdict"),
    [
        (spread(-1), spread(0), 0.01, "pays"),
        (spread(-1), spread(0), 0.06, "cannot be told"),
        (spread(1), spread(0), 0.01, "does not pay"),
        (spread(0), spread(-1), 0.01, "does not pay"),
        (spread(-1), spread(-1), 0.01, "a trade"),
        (spread(0), spread(1), 0.01, "pays"),
    ],
)
def test_a_cut_pays_where_it_is_told_to_be_better_in_something_and_worse_in_nothing(
    tokens: Rises, solved: Rises, p: float, verdict: str
) -> None:
    payoff = Payoff("incidents", "m", "none", "learned", "static", tokens, solved, p_tokens=p, p_solved=p)
    assert payoff.verdict == verdict


def test_break_even_is_counted_in_rejections_where_no_fault_is_injected() -> None:
    rows = [
        {
            "instance": name,
            "repetition": 1,
            "architecture": arm,
            "first_pass_tokens": first,
            "retry_tokens": again,
            "rejections": n,
        }
        for name, n in (("a", 2), ("b", 1), ("c", 0))
        for arm, first, again in (("learned", 300.0, 100 * n), ("static", 200.0, 300 * n))
    ]
    rate = break_even_by_rejections(pd.DataFrame(rows), "learned", "static")
    assert rate is not None and rate.rate == 0.5
    assert break_even_by_rejections(pd.DataFrame(row for row in rows if row["instance"] == "c"), "learned", "static") is None
