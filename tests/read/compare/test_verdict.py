"""If A and B change places, so does the verdict; and the verdict decides what N trials can decide."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import run_of, trial, with_manifest
from scorecards import crashed, shop

from bench.common.errors import ConfigError
from bench.read.analysis.frames import Run
from bench.read.compare.compare import Comparison, compare
from bench.read.compare.verdict import (
    Contrast,
    JudgedMeasure,
    Level,
    allowed_damage,
    counterexamples,
    finding_of,
    verdict_of,
)
from bench.worlds.read.scorecard.build import scorecard_of
from bench.worlds.read.scorecard.card import Scorecard, ScoredTrial
from bench.worlds.read.scorecard.compare import compare_scorecards

ERRING = {"m": {"kind": "simulated", "failure_rate": 0.1, "price_in": 1.0, "price_out": 1.0}}
FINDINGS = st.sampled_from(["worse", "better", "trade-off", "equal", "no worse", "no better", "inconclusive", "not measured"])
LEVELS = st.lists(
    st.builds(Level, st.lists(st.builds(JudgedMeasure, FINDINGS, st.booleans()), max_size=3), st.lists(FINDINGS, max_size=3)),
    max_size=3,
)


def exchanged(word: str) -> str:
    exchanged = {"worse": "better", "better": "worse", "no worse": "no better", "no better": "no worse"}
    return exchanged.get(word, word)


@given(LEVELS)
@settings(max_examples=300)
def test_exchanged_findings_come_to_the_exchanged_verdict(levels: list[Level]) -> None:
    others = [
        Level([replaced(each) for each in level.overall], [exchanged(finding) for finding in level.arms])  # type: ignore[misc]
        for level in levels
    ]
    assert verdict_of(others) == exchanged(verdict_of(levels))


def replaced(each: JudgedMeasure) -> JudgedMeasure:
    return JudgedMeasure(exchanged(each.finding), each.alike)  # type: ignore[arg-type]


NUMBERS = st.floats(-1, 1)


@given(NUMBERS, NUMBERS, st.floats(0, 0.5), st.booleans(), st.booleans(), st.booleans())
def test_the_finding_on_an_interval_is_exchanged_with_its_ends(
    end: float, other: float, margin: float, is_rate: bool, more_is_good: bool, is_proven: bool
) -> None:
    low, high = sorted((end, other))
    contrast = Contrast(0.0, (low + high) / 2, low, high, margin, 9, None, is_rate, more_is_good)
    turned = replace(contrast, before=contrast.after, after=0.0, low=-high, high=-low)
    assert finding_of(turned, is_proven) == exchanged(finding_of(contrast, is_proven))


# Runs


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four arms of fifty trials: ten tasks, five times each."""
    records = [
        trial(architecture, plan, repetition, instance=f"task_{task}", id=f"{architecture}-{plan}-{task}-{repetition}")
        for architecture in ("static", "monolithic")
        for plan in ("none", "paper")
        for task in range(10)
        for repetition in range(1, 6)
    ]
    return with_manifest(run_of(tmp_path_factory.mktemp("template"), records), models=ERRING)


def drawn(run: Run, rng: np.random.Generator, solved: np.ndarray, tokens: float, spread: float) -> Run:
    """The run with outcomes of these chances, and tokens of this mean and spread."""
    n = len(run.trials)
    outcomes = np.where(rng.random(n) < solved, "solved", np.where(rng.random(n) < 0.05, "gave_up", "wrong"))
    spent = np.maximum(1, rng.lognormal(np.log(tokens), spread, n)).astype(int)
    price = np.maximum(1.0, rng.lognormal(np.log(tokens / 3), spread, n))
    values = {"outcome": outcomes, "tokens": spent, "cost": spent * 1e-6, "api_seconds": spent / 100}
    under_faults = run.trials["plan"].to_numpy() == "paper"
    return replace(run, trials=run.trials.assign(**values, price_tokens=np.where(under_faults, price, np.nan)))


def tasks(run: Run, rng: np.random.Generator, mean: float, alike: bool) -> np.ndarray:
    """Each trial's chance to be solved: the same for all, or of its task, from hopeless to sure."""
    if not alike:
        return np.full(len(run.trials), mean)
    names = run.trials["instance"].to_numpy()
    chances = {name: rng.beta(2 * mean, 2 * (1 - mean)) for name in sorted(set(names))}
    return np.array([chances[name] for name in names])


def findings(comparison: Comparison) -> list[str]:
    every = [*comparison.overall, *(row for arm in comparison.arms for row in arm.rows)]
    return [comparison.verdict, *(arm.verdict for arm in comparison.arms), *(row.finding for row in every)]


@given(
    st.integers(0, 2**32 - 1),
    st.floats(0.05, 0.95),
    st.floats(0.05, 0.95),
    st.floats(0.7, 1.4),
    st.floats(0.001, 1),
    st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_of_random_runs_exchanged_each_finding_is_exchanged_and_never_are_both_worse(
    template: Run, seed: int, solved: float, other: float, dearer: float, spread: float, with_errors: bool
) -> None:
    rng = np.random.default_rng(seed)
    some = replace(template, trials=template.trials.loc[rng.random(len(template.trials)) < rng.uniform(0.05, 1)])
    if some.trials.empty:
        return
    before = drawn(some, rng, tasks(some, rng, solved, alike=True), 1000, spread)
    after = drawn(some, rng, tasks(some, rng, other, alike=True), 1000 * dearer, spread)
    if with_errors:
        after = replace(
            after, trials=after.trials.assign(outcome=np.where(rng.random(len(some.trials)) < 0.1, "error", "solved"))
        )
    forth, back = findings(compare(before, after, 0.05)), findings(compare(after, before, 0.05))
    assert back == list(map(exchanged, forth))
    assert (forth[0], back[0]) != ("worse", "worse")


def verdicts(template: Run, loss: float, alike: bool, seeds: int = 200) -> Counter[str]:
    """The verdicts of so many seeds on two runs of 200 trials, of which the second solves so many points fewer."""
    counts = Counter[str]()
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        chances = tasks(template, rng, 0.7, alike)
        fewer = chances - loss if not alike else np.clip(chances * (1 - loss / 0.7), 0, 1)
        first, second = drawn(template, rng, chances, 1000, 0.3), drawn(template, rng, fewer, 1000, 0.3)
        counts[compare(first, second, 0.05).verdict] += 1
    return counts


@pytest.mark.parametrize("seeds", [20, pytest.param(200, marks=pytest.mark.endurance)])
@pytest.mark.parametrize("alike", [False, True])
def test_a_loss_of_twenty_points_of_two_hundred_trials_is_worse_and_equal_runs_are_not(
    template: Run, alike: bool, seeds: int
) -> None:
    """Of 200 seeds 193 and 186 are worse, and 1 each of equal runs."""
    lost, same = verdicts(template, 0.2, alike, seeds), verdicts(template, 0.0, alike, seeds)
    assert lost["worse"] >= 0.8 * seeds and not lost["better"], lost
    assert same["worse"] <= 0.05 * seeds and same["better"] <= 0.05 * seeds, same


# Damage


def shops(folder: Path, doubled: int, name: str) -> Run:
    return run_of(folder / name, shop(doubled, "solved", instances=1))


def test_a_single_pair_that_damages_more_is_worse_and_a_number_of_effects_can_be_allowed(tmp_path: Path) -> None:
    clean, harmful = shops(tmp_path, 0, "clean"), shops(tmp_path, 1, "harmful")
    result = compare(clean, harmful, 0.05)
    assert (result.verdict, compare(harmful, clean, 0.05).verdict) == ("worse", "better")
    assert result.summary.startswith("worse: worse in damage (1 doubled more)")
    assert compare(clean, harmful, 0.05, allowed={"doubled": 1}).verdict == "inconclusive", "solved is in doubt"
    assert compare(clean, harmful, 0.05, ("damage",), allowed={"doubled": 1}).verdict == "equal"


def test_a_live_model_that_damages_more_once_may_do_so_by_chance(tmp_path: Path) -> None:
    clean, harmful = (
        replace(run, trials=run.trials.assign(timing="live"))
        for run in (shops(tmp_path, 0, "clean"), shops(tmp_path, 1, "harmful"))
    )
    assert compare(clean, harmful, 0.05, ("damage",)).verdict == "inconclusive"


def test_who_damages_more_in_one_pair_and_less_in_another_is_a_trade_off(tmp_path: Path) -> None:
    sides = [[crashed("a", n), crashed("b", 1 - n)] for n in (0, 1)]
    first, second = (run_of(tmp_path / str(n), records) for n, records in enumerate(sides))
    assert compare(first, second, 0.05, ("damage",)).verdict == "trade-off"
    assert counterexamples({("a", 1): {"lost": 1}}, {("a", 1): {"lost": 0}}, {}) == ("better", "1 lost fewer")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=12),
    st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_of_random_scorecards_exchanged_each_finding_is_exchanged(
    cards: Scorecard, tasks: list[tuple[int, int, bool, bool]], are_paired: bool
) -> None:
    first, second = (
        replace(
            cards,
            rows=(
                replace(
                    cards.rows[0], results=tuple(scored(n, task[side], bool(task[2 + side])) for n, task in enumerate(tasks))
                ),
            ),
            worlds=(replace(cards.worlds[0], schedule="other" if side and not are_paired else "one"),),
        )
        for side in (0, 1)
    )
    forth, back = compare_scorecards(first, second, 0.05), compare_scorecards(second, first, 0.05)
    for one_way, other in zip([*forth.overall, *forth.differences], [*back.overall, *back.differences], strict=True):
        assert other.finding == exchanged(one_way.finding)
    assert back.verdict == exchanged(forth.verdict)


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Scorecard:
    return scorecard_of([run_of(tmp_path_factory.mktemp("card"), shop(instances=2))])


def scored(number: int, harm: int, right: bool) -> ScoredTrial:
    by = "process:unacknowledged" if number % 2 else "control"
    return ScoredTrial(f"task_{number // 4}", number, "crash" if number % 2 else "none", by, number % 2, right, harm)


@pytest.mark.parametrize("text", ["doubled", "doubled=", "doubled=-1", "doubled=1e3", "doubled=99999999", "doublde=1", "=1"])
def test_what_allows_no_number_of_effects_is_a_line(text: str) -> None:
    assert allowed_damage(["doubled=2", "lost=0"]) == {"doubled": 2, "lost": 0}
    with pytest.raises(ConfigError, match="--allow"):
        allowed_damage([text])
