"""The fewest faults that break a trial: none of them can be left out, and the config that is written breaks the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment_runs import run
from hypothesis import assume, given
from hypothesis import strategies as st
from trials import ROOTS

from bench.cli.commands.counterfactual import lines_of
from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import PACKS
from bench.rerun.config_of import config_text
from bench.rerun.rerun import RerunnableTrial, TrialFailure, rerunnable_trial
from bench.rerun.shrink import ShrinkResult, minimal_subsequence, restrict, shrink
from bench.run.experiment.config import Config, load_config
from bench.run.trial import loop

LATE_ANSWER = [
    {"point": "tool", "effect": "error", "tool": "send_outreach", "attempts": [1]},
    {"point": "tool", "effect": "lost_ack", "tool": "send_outreach", "attempts": [2]},
]
"""Together they double the letter: the second try is done, and a third follows."""
HARMLESS = [{"point": "tool", "effect": "error", "tool": tool, "attempts": [1]} for tool in ("note_crm", "publish_offer")]
PLANS: Mapping[str, Sequence[Mapping[str, Any]]] = {"none": [], "harmless": HARMLESS, "doubled": [*HARMLESS, *LATE_ANSWER]}


def config(**settings: Any) -> Config:
    values: dict[str, Any] = {
        "name": "broken",
        "scenarios": ["contract_renewal/case_12"],
        "architectures": ["bare_agent"],
        "models": ["m"],
        "plans": list(PLANS),
        "repetitions": 1,
        "seed": 20260601,
        "model": {"m": {"kind": "simulated"}},
        "plan": {name: {"faults": faults} for name, faults in PLANS.items()},
    }
    return Config.model_validate({**values, **settings})


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, RerunnableTrial]:
    folder = tmp_path_factory.mktemp("shrink") / "broken"
    return {record.plan: rerunnable_trial(folder, record.id, PACKS) for record in run(config(), folder, PACKS)}


@pytest.fixture(scope="module")
def doubled(broken: Mapping[str, RerunnableTrial]) -> ShrinkResult:
    return loop.run(shrink(broken["doubled"]))


def test_the_two_faults_that_double_a_letter_are_found_among_four(doubled: ShrinkResult) -> None:
    assert len(doubled.struck) == 4
    assert [(number, strike.target, strike.attempt) for number, strike in doubled.fewest] == [
        (2, "send_outreach", 1),
        (3, "send_outreach", 2),
    ]
    assert doubled.kinds == {"doubled"}


def test_without_any_of_the_fewest_faults_the_trial_is_no_longer_damaged(doubled: ShrinkResult) -> None:
    plan = doubled.original.plan
    for left_out in doubled.fewest:
        rest = [strike for strike in doubled.fewest if strike != left_out]
        ended = TrialFailure.of(loop.run(doubled.original.run_again(restrict(plan, rest))).record)
        assert not ended.beyond(doubled.control)


def test_the_config_that_is_written_breaks_in_the_same_way(doubled: ShrinkResult, tmp_path: Path) -> None:
    text = config_text(doubled.original.arm.matrix.config, "shrunk", doubled.plan.faults, ["A line."])
    (tmp_path / "shrunk.toml").write_text(text)
    records = run(load_config(tmp_path / "shrunk.toml", {}), tmp_path / "run", PACKS)
    damage = {record.plan: TrialFailure.of(record).damage for record in records}
    assert damage["doubled"]["doubled"] == 1
    assert "doubled" not in damage["none"]


def test_what_is_said_names_each_fault_and_the_control(doubled: ShrinkResult) -> None:
    text = "\n".join(lines_of(doubled))
    assert "2 of the 4 faults that struck it suffice for more damage than that (doubled)" in text
    assert "tool lost_ack: send_outreach, try 2, outreach to" in text
    assert "Without any fault it ends wrong, with 1 unauthorised." in text


def test_a_trial_that_fails_without_any_fault_needs_none(broken: Mapping[str, RerunnableTrial]) -> None:
    shrunk = loop.run(shrink(broken["harmless"]))
    assert shrunk.fewest == ()
    assert "It fails as it does without any fault: no fault is needed." in lines_of(shrunk)


def test_a_kind_of_damage_that_did_not_happen_is_refused(broken: Mapping[str, RerunnableTrial]) -> None:
    with pytest.raises(ConfigError, match="no damage of the kind 'late'"):
        loop.run(shrink(broken["doubled"], "late"))


def test_a_trial_without_faults_is_refused(broken: Mapping[str, RerunnableTrial]) -> None:
    with pytest.raises(ConfigError, match="no fault struck it"):
        loop.run(shrink(broken["none"]))


def test_a_trial_that_nobody_has_is_refused(broken: Mapping[str, RerunnableTrial]) -> None:
    with pytest.raises(ConfigError, match="trial '0000': broken has none"):
        rerunnable_trial(broken["none"].folder, "0000", PACKS)


def test_a_rerun_that_is_another_trial_is_refused(broken: Mapping[str, RerunnableTrial]) -> None:
    original = broken["doubled"]
    other = replace(original, record=broken["harmless"].record)
    with pytest.raises(ResultsError, match="a rerun with nothing changed is another trial"):
        loop.run(shrink(other))


def test_a_task_is_broken_by_its_outcome(tmp_path: Path) -> None:
    every = [{"point": "output", "effect": "missing_field", "attempts": "every", "subtask": "total"}]
    faults = [{"point": "output", "effect": "missing_field", "attempts": [1], "subtask": "gather"}, *every]
    settings = config(
        scenarios=["tiny"], architectures=["runtime_structured"], plans=["both"], plan={"both": {"faults": faults}}
    )
    [record] = run(settings, tmp_path / "run", ROOTS)
    shrunk = loop.run(shrink(rerunnable_trial(tmp_path / "run", record.id[:8], ROOTS)))
    assert record.outcome == "gave_up"
    assert [(strike.target, strike.attempt) for _, strike in shrunk.fewest] == [("total", 1), ("total", 2), ("total", 3)]


@given(st.integers(1, 12), st.lists(st.frozensets(st.integers(0, 11), min_size=1, max_size=4), min_size=1, max_size=4))
def test_of_the_items_that_are_left_none_can_be_left_out(size: int, causes: list[frozenset[int]]) -> None:
    items = range(size)
    asked: list[tuple[int, ...]] = []

    async def fails(part: Sequence[int]) -> bool:
        asked.append(tuple(part))
        return any(cause & set(items) <= set(part) for cause in causes if cause & set(items))

    assume(any(cause & set(items) for cause in causes))
    fewest = loop.run(minimal_subsequence(items, fails))
    assert len(asked) == len(set(asked))
    assert loop.run(fails(fewest))
    smaller = [[item for item in fewest if item != left_out] for left_out in fewest]
    assert not any(loop.run(fails(part)) for part in smaller if part)
