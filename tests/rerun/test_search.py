"""The search finds the schedules that are planted, and strikes nothing but what it says."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import pytest
from planted import MUCH, WEAKNESSES, planted

from bench.cli.commands.counterfactual import worst_lines
from bench.common.paths import PACKS, STUDIES_FOLDER
from bench.rerun.rerun import RerunArm
from bench.rerun.search import MAX_STRIKES, SearchResult, SearchState, StrikeSet, TrialHarm, next_schedule, plan_with, search
from bench.run.experiment.config import load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.trial import loop

ROOT = Path(__file__).parents[2]
SMALL = 60
"""Trials: enough for a weakness that one tool shows; the page's table has 200 for each."""
WHOLE, SEEDS = 200, (1, 2, 3, 4, 5)
MOST_DRAWS = 100
"""Draws of random search without a new schedule, after which it ends."""


def at_random(seen: SearchState, draw: Random) -> StrikeSet | None:
    """Draw at most `MAX_STRIKES` of the places seen, all with the same chance. Return None if `MOST_DRAWS` draws give no new
    schedule."""
    places = list(seen.places)
    for _ in range(MOST_DRAWS if places else 0):
        size = draw.randint(1, min(MAX_STRIKES, len(places)))
        if (schedule := frozenset(draw.sample(places, size))) not in seen.tried:
            return schedule
    return None


def arm_of(weakness: str = "") -> RerunArm:
    given: dict[str, object] = {
        "scenarios": ["contract_renewal/case_16"],
        "instances": None,
        "repetitions": 1,
        "plans": ["mixed_30"],
    }
    given["architectures"] = ["state_machine_remedied"]
    config = load_config(STUDIES_FOLDER / "reliability_surface" / "config.toml", given)
    matrix = build_matrix(config, PACKS, "code")
    return RerunArm(matrix.specs[0], matrix.with_architecture(planted(weakness)) if weakness else matrix)


@cache
def found_in(weakness: str) -> SearchResult:
    arm = arm_of(weakness)
    return loop.run(search(arm.run, arm.spec.plan, SMALL, seed=1))


@pytest.mark.parametrize("weakness", ["an offer that fails once", "a letter that fails twice"])
def test_a_planted_schedule_is_found(weakness: str) -> None:
    result = found_in(weakness)
    struck = {strike.target for _, strike in result.worst.schedule}
    assert result.worst.harm.damage >= MUCH
    assert set(WEAKNESSES[weakness]) <= struck


def test_an_agent_that_no_schedule_harms_is_said_to_be_unharmed() -> None:
    arm = arm_of()
    result = loop.run(search(arm.run, arm.spec.plan, 20, seed=1))
    assert result.worst.harm == result.tried[0].harm
    assert worst_lines(result, arm.spec.plan) == [
        "No schedule did any damage beyond the control, or kept the trial from being solved."
    ]


def test_the_same_seed_tries_the_same_schedules() -> None:
    arm = arm_of("an offer that fails once")
    first, second = (loop.run(search(arm.run, arm.spec.plan, 12, seed=3)) for _ in range(2))
    assert first == second


def test_only_the_strikes_of_a_schedule_are_made() -> None:
    arm = arm_of("an offer that fails once")
    worst = found_in("an offer that fails once").worst
    result = loop.run(arm.run(plan_with(arm.spec.plan, worst.schedule)))
    assert set(result.strikes) <= worst.schedule


def test_damage_counts_before_what_is_unsolved_and_before_tokens() -> None:
    assert TrialHarm(1, False, 0) > TrialHarm(0, True, 10) > TrialHarm(0, False, 1_000)


@pytest.mark.endurance
def test_the_page_says_how_often_each_search_reaches_what_was_planted() -> None:
    arms = [arm_of(weakness) for weakness in WEAKNESSES]
    led, random = (
        sum(
            loop.run(search(arm.run, arm.spec.plan, WHOLE, seed, strategy)).worst.harm.damage >= MUCH
            for arm in arms
            for seed in SEEDS
        )
        for strategy in (next_schedule, at_random)
    )
    tries = len(arms) * len(SEEDS)
    page = " ".join((ROOT / "docs" / "shrinking.md").read_text(encoding="utf-8").split())
    assert f"damage in {led} of {tries} searches of 200 trials, and random search in {random} of {tries}." in page
