"""What the page on advice says of six workloads is what the committed tables give, and its first screen is the command's."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean

import pandas as pd
import pytest
from commands import bench
from experiment_runs import run
from run_studies import evidence_of

from bench.read.analysis.statistics import paired_test
from bench.record.config import StoredConfig
from bench.record.reading import read_manifest
from bench.rerun.advice import Advice, HeldOutResult, advise, held_out
from bench.rerun.advice_artifact import share
from bench.rerun.evidence import TABLE, read_evidence
from bench.rerun.workload import read_workload
from bench.run.experiment.config import load_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
WORKLOADS = sorted((ROOT / "configs" / "workloads").glob("*.toml"))
NO_KEYS = sorted((ROOT / "configs" / "workloads" / "no_keys").glob("*.toml"))
RUNS = ["advise", "advise_held_out", "advise_no_keys"]


@cache
def advised(path: Path, without: str = "") -> tuple[Advice, HeldOutResult]:
    """The advice on a workload and how it came out, where this pattern was not measured."""
    workload = read_workload(path)
    assert workload.held_out
    read = (read_evidence(str(ROOT / "reports" / of.run), of.scenario) for of in (workload.evidence, workload.held_out))
    evidence, unseen = (replace(each, config=less(each.config, without)) for each in read)
    return (advice := advise(workload, evidence)), held_out(advice, unseen, workload.held_out.plan)


def less(config: StoredConfig, pattern: str) -> StoredConfig:
    return config.model_copy(update={"architectures": [name for name in config.architectures if name != pattern]})


def judged(path: Path) -> HeldOutResult:
    return advised(path)[1]


def test_the_page_says_of_each_workload_how_its_advice_came_out_where_it_had_not_looked() -> None:
    [damaged] = {share(judged(path).damaged) for path in WORKLOADS}
    assert f"with {damaged} trials damaged in each" in TEXT
    assert f"The advice holds on {sum(judged(path).holds for path in WORKLOADS)} of {len(WORKLOADS)} workloads" in TEXT
    assert sum(judged(path).harmless == judged(path).close == 9 for path in WORKLOADS) == 5, "the page says: in five of the six"


def beside_a_coin(of: Callable[[Advice, HeldOutResult], float]) -> tuple[int, int, float | None]:
    """In how many of the twelve workloads a choice does less damage for each fault than a coin, how much less it does in the
    mean, in hundredths, and the p of the sign-flip test over workloads."""
    less = {(path.stem, 1): outcome.mean_harm - of(advice, outcome) for path in NO_KEYS for advice, outcome in [advised(path)]}
    p = paired_test(less, dict.fromkeys(less, 0.0)).p
    return sum(value > 0 for value in less.values()), round(100 * mean(less.values())), p


def without_logs(outcome: HeldOutResult) -> float:
    """The damage for each fault of a coin that draws among the arms other than `event_driven`."""
    return mean(value for arm, value in outcome.harm.items() if arm != "event_driven")


def test_the_page_says_how_the_choice_stands_beside_a_coin_and_that_it_is_always_the_same() -> None:
    wins, hundredths, p = beside_a_coin(lambda _, outcome: outcome.harm[outcome.arm])
    assert len(NO_KEYS) == 12 and all(
        outcome.harm[advice.arm_by_steps] == outcome.harm[outcome.arm] for advice, outcome in map(advised, NO_KEYS)
    )
    assert (wins, p) == (12, 2 / 2**12) and f"by {hundredths / 100:.2f} in the mean" in TEXT
    assert {judged(path).arm for path in NO_KEYS} == {"composition"}
    least = sum(judged(path).harm[judged(path).arm] == min(judged(path).harm.values()) for path in NO_KEYS)
    better = sum(judged(path).harm[judged(path).arm] < without_logs(judged(path)) for path in NO_KEYS)
    assert f"the least damage in {least} of 12" in TEXT and f"the choice is better than the coin in {better} of 12" in TEXT


def test_the_pages_first_screen_is_what_the_command_prints(tmp_path: Path) -> None:
    (tmp_path / "reports").symlink_to(ROOT / "reports")
    code, out, _ = bench(tmp_path, "more", "advise", str(ROOT / "configs" / "workloads" / "returns.toml"))
    assert code == 0 and out.strip() in PAGE and len(out.splitlines()) <= 12


@pytest.mark.parametrize("name", RUNS)
def test_the_committed_tables_are_of_the_configs_as_they_stand(name: str) -> None:
    recorded = read_manifest(ROOT / "reports" / f"{name}-simulated").config
    config = load_config(ROOT / "studies" / "comparisons" / f"{name}.toml", {})
    assert recorded.model_dump(exclude={"model"}) == config.model_dump(exclude={"model"})


@pytest.mark.parametrize("name", RUNS)
def test_the_committed_trials_come_out_so_again(name: str, tmp_path: Path) -> None:
    committed = pd.read_csv(ROOT / "reports" / f"{name}-simulated" / TABLE, dtype=str)
    instance = committed["instance"][committed["scenario"].str.startswith("incident_response")].iloc[0]
    row = committed["instance"] == instance
    scenario = committed["scenario"][row & committed["scenario"].str.startswith("incident_response")].iloc[0]
    arms = ["bare_agent", "state_machine" if name == "advise_no_keys" else "state_machine_remedied"]
    changes = {"scenarios": [f"{scenario}/{instance}"], "architectures": arms, "instances": None}
    run(load_config(ROOT / "studies" / "comparisons" / f"{name}.toml", changes), tmp_path / name, [ROOT / "scenarios"])
    again = pd.read_csv(io.BytesIO(evidence_of(tmp_path / name)[TABLE]), dtype=str, compression="gzip")
    kept = committed[row & (committed["scenario"] == scenario) & committed["architecture"].isin(arms)]
    assert sorted(again.itertuples(index=False)) == sorted(kept.itertuples(index=False))
    assert len(kept) == 2 * len(committed["plan"].unique())


def test_no_instance_of_the_evidence_is_among_those_by_which_it_is_judged() -> None:
    for path in (*WORKLOADS, *NO_KEYS):
        workload = read_workload(path)
        assert workload.held_out
        unseen = read_evidence(str(ROOT / "reports" / workload.held_out.run), workload.held_out.scenario)
        evidence = read_evidence(str(ROOT / "reports" / workload.evidence.run), workload.evidence.scenario)
        assert not set(unseen.trials["instance"]) & set(evidence.trials["instance"])
