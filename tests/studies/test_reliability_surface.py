"""The reliability surface: pass^k by hand, what is a plan's λ and a scenario's ε, and what its table and figure say."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import config_in, edit_manifest, trial, write_run

import bench
from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import pass_hat
from bench.read.render.drawing import style
from bench.read.render.table import markdown
from bench.run.experiment.config import load_config
from studies.reliability_surface.study import SurfacePoint, pictures, surface, tables

Fault = Mapping[str, Any]
LIMITED: Fault = {"point": "call", "effect": "rate_limit", "probability": 0.1}
REFUSED: Fault = {"point": "tool", "effect": "error", "probability": 0.2}
ONCE: Fault = {"point": "tool", "effect": "error", "attempts": [1]}
PLANS = {"limited": [LIMITED, LIMITED, LIMITED], "refused": [REFUSED], "both": [LIMITED, LIMITED, REFUSED], "once": [ONCE]}
SOLVED = {("a", "none"): 3, ("b", "none"): 3, ("a", "refused"): 2, ("b", "refused"): 1}
"""(instance, plan) -> how many of its three repetitions are solved; of all others none."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("surface") / "run"
    records = [
        trial(
            "bare_agent",
            plan,
            n,
            "solved" if n <= SOLVED.get((instance, plan), 0) else "wrong",
            id=f"{scenario} {plan} {instance} {n}",
            scenario=scenario,
            instance=instance,
        )
        for scenario in ("pack", "pack:epsilon_2")
        for plan in ("none", *PLANS)
        for instance in ("a", "b")
        for n in (1, 2, 3)
    ]
    write_run(folder, records)
    written = {
        name: {"faults": [{"attempts": [], "probability": 0.0, "subtask": "*", **fault} for fault in faults]}
        for name, faults in PLANS.items()
    }
    edit_manifest(folder, config={**config_in(folder), "plan": written})
    return bench.load_run(folder)


def at(run: Run, kind: str, epsilon: int = 0) -> SurfacePoint:
    [point] = [each for each in surface(run) if (each.kind, each.epsilon) == (kind, epsilon)]
    return point


ROOT = Path(__file__).parents[2]


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))))
def test_pass_hat_of_one_task_is_the_share_of_all_draws_of_k_that_all_came_right(case: tuple[int, int, int]) -> None:
    c, n, k = case
    draws = list(combinations([True] * c + [False] * (n - c), k))
    if n > 1:
        assert pass_hat(k, [(c, n)]).value == pytest.approx(sum(map(all, draws)) / len(draws))


def test_a_point_is_the_mean_over_instances_of_k_repetitions_that_all_come_right(run: Run) -> None:
    """Of three repetitions 2 and 1 came right: 3/6 for one, and for two 1/3 and 0 of the three ways to draw them."""
    point = at(run, "tool error")
    assert [each.value for each in point.passes] == pytest.approx([(2 + 1) / 6, (1 / 3 + 0) / 2, 0.0])
    assert (point.instances, point.repetitions, point.intensity) == (2, 3, 0.2)
    assert [each.value for each in at(run, "").passes] == [1.0, 1.0, 1.0]


def test_a_fault_that_stands_for_each_try_has_the_chance_of_one_and_kinds_together_have_their_sum(run: Run) -> None:
    assert (at(run, "rate limit").intensity, at(run, "mixed").intensity) == (0.1, 0.3)


def test_a_plan_without_a_chance_is_no_point_of_the_surface(run: Run) -> None:
    assert {(point.kind, point.intensity) for point in surface(run)} == {
        *(("", 0.0), ("rate limit", 0.1), ("tool error", 0.2), ("mixed", 0.3))
    }


def test_an_equivalent_is_a_point_of_the_same_task_at_its_epsilon(run: Run) -> None:
    assert {(point.task, point.epsilon) for point in surface(run)} == {("pack", 0), ("pack", 2)}
    assert at(run, "tool error", 2).passes == at(run, "tool error").passes


def test_a_run_without_a_plan_of_chances_or_without_a_control_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [trial("bare_agent", "none", 1)])
    with pytest.raises(ResultsError, match="needs fault plans whose faults strike with a probability"):
        surface(bench.load_run(tmp_path / "run"))


def test_the_table_has_a_row_for_each_point_and_the_figure_says_that_it_is_simulated(run: Run) -> None:
    table, strongest = tables(run)
    assert len(table.rows) == len(surface(run)) and "SIMULATED" in markdown(table)
    assert [column.split(",")[0] for column in strongest.columns[4:]] == ["none", "rate limit", "tool error", "mixed"]
    assert [(row[3], row[6].split(" ")[0]) for row in strongest.texts()] == [("1", "0.500"), ("3", "0.000")]
    with style():
        [picture] = pictures(run)
    assert picture.name.startswith("study-reliability-surface")


def test_the_committed_tables_are_of_the_shipped_config_and_hold_what_the_page_says() -> None:
    report = ROOT / "reports" / "reliability_surface-simulated"
    manifest = json.loads((report / "manifest.json").read_text(encoding="utf-8"))
    config = load_config(ROOT / "studies" / "reliability_surface" / "config.toml", {})
    assert manifest["config"]["plan"] == json.loads(json.dumps({name: each.model_dump() for name, each in config.plan.items()}))
    with (report / "tables" / "study-reliability-surface.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(config.scenarios) * len(config.architectures) * len(config.plans)
    solved = {(row["Architecture"], row["ε"], row["Fault"], row["λ"]): float(row["pass^1"]) for row in rows}
    assert all(rate == solved[name, "0", kind, strength] for (name, _, kind, strength), rate in solved.items())
    remedied = {key: rate for key, rate in solved.items() if key[0] == "state_machine_remedied"}
    assert {key[2:]: rate for key, rate in remedied.items() if rate < 1.0} == {("rate limit", "0.3"): 0.95}
    bare = {kind: solved["bare_agent", "0", kind, "0.3"] for kind in ("lost answer", "crash", "rate limit")}
    assert bare == {"lost answer": 0.075, "crash": 0.15, "rate limit": 0.575}
