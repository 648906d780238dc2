"""The calibration measures the methods that the suite ships, in worlds whose truth is what it is said to be."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from calibration import methods
from calibration.exact import RATES, covered, exactly, wilson
from calibration.experiments import Result, Simulations, clusters, everything, false_positives, means
from calibration.report import write
from calibration.worlds import RECORDED, PairedWorld, null_worlds, paired_worlds, worlds
from scipy import stats

from bench.analysis.statistics import (
    Pair,
    by_unit,
    generator,
    groups_differ,
    mean_of,
    paired_test,
    ratio_of_means,
    share_of,
)
from bench.analysis.statistics.limits import COVERAGE_OF_MEANS, COVERAGE_OF_RATES, FALSE_POSITIVES

REPORT = Path(__file__).parents[2] / "reports" / "calibration" / "calibration.csv"


def by_number(values: np.ndarray) -> dict[Pair, float]:
    return {("", number): value for number, value in enumerate(values.tolist())}


@pytest.fixture(name="rng")
def _rng() -> np.random.Generator:
    return np.random.default_rng(11)


SHOWN = {("mean", "Student t"), ("paired difference", "Student t"), ("ratio of paired means", "Fieller")}


def committed() -> Iterator[dict[str, str]]:
    with REPORT.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def test_the_worlds_are_those_of_the_committed_report() -> None:
    pairs = [*paired_worlds(RECORDED), *null_worlds(RECORDED)]
    named = {one.name for one in worlds(RECORDED)} | {one.name for one in pairs}
    of_tokens = {row["world"] for row in committed() if row["about"] in ("mean", "paired difference", "paired test")}
    assert of_tokens == named
    page = " ".join(REPORT.with_name("README.md").read_text(encoding="utf-8").split())
    assert f"an arm by {RECORDED.spread:.2f} (sd of the logarithm, pooled), by {RECORDED.widest:.2f} in the widest" in page
    assert f"{RECORDED.rejected} of {RECORDED.attempts} monolithic replies" in page


@pytest.mark.parametrize("number", range(8))
def test_a_worlds_mean_is_what_it_is_said_to_be(number: int, rng: np.random.Generator) -> None:
    world = worlds(RECORDED)[number]
    values = world.draw(rng, 20_000, 1)
    assert abs(values.mean() - world.mean) < 4 * values.std() / np.sqrt(values.size)


@pytest.mark.parametrize("pair", [*paired_worlds(RECORDED), *null_worlds(RECORDED)], ids=lambda pair: pair.name)
def test_the_arms_of_a_pair_have_their_means_and_a_seed_in_common(pair: PairedWorld, rng: np.random.Generator) -> None:
    one, other = pair.draw(rng, 20_000, 1)
    for arm, mean in zip((one, other), pair.means, strict=True):
        assert abs(arm.mean() - mean) < 4 * arm.std() / np.sqrt(arm.size)
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.02


@pytest.mark.parametrize("n", [3, 5, 10, 30])
@pytest.mark.parametrize("number", [0, 3, 5])
def test_the_intervals_measured_are_those_that_are_shipped(number: int, n: int, rng: np.random.Generator) -> None:
    values = worlds(RECORDED)[number].draw(rng, 4, n)
    low, high = methods.INTERVALS["Student t"](values)
    for row, sample in enumerate(values):
        shipped = mean_of(sample)
        assert (low[row], high[row]) == pytest.approx((shipped.low, shipped.high), rel=1e-9)


@pytest.mark.parametrize(("method", "interval"), [("percentile", methods.percentile), ("BCa", methods.bca)])
def test_the_rival_bootstraps_are_scipys(
    method: Literal["percentile", "BCa"], interval: Callable[[np.ndarray], methods.Ends], rng: np.random.Generator
) -> None:
    values = worlds(RECORDED)[3].draw(rng, 1, 10)
    found = stats.bootstrap((values[0],), np.mean, n_resamples=9999, method=method, rng=generator()).confidence_interval
    assert [float(end[0]) for end in interval(values)] == pytest.approx([found.low, found.high])


@pytest.mark.parametrize(("n", "near"), [(3, 1e-12), (5, 1e-12), (10, 1e-12), (30, 0.03)])
def test_the_tests_measured_are_those_that_are_shipped(n: int, near: float, rng: np.random.Generator) -> None:
    one, other = paired_worlds(RECORDED)[2].draw(rng, 4, n)
    measured = methods.sign_flip(one - other)
    for row in range(4):
        assert measured[row] == pytest.approx(paired_test(by_number(one[row]), by_number(other[row])).p, abs=near)


def test_the_ratios_interval_measured_is_the_one_that_is_shipped(rng: np.random.Generator) -> None:
    one, other = paired_worlds(RECORDED)[2].draw(rng, 20, 3)
    low, high = methods.fieller(one, other)
    for row in range(20):
        shipped = ratio_of_means(by_number(one[row]), by_number(other[row]))
        ends = (-np.inf if shipped.low is None else shipped.low, np.inf if shipped.high is None else shipped.high)
        assert (low[row], high[row]) == pytest.approx(ends)


def test_the_other_methods_measured_are_those_that_are_shipped(rng: np.random.Generator) -> None:
    one, other = (worlds(RECORDED)[0].draw(rng, 4, 5) for _ in range(2))
    for row, p in enumerate(methods.mann_whitney(one, other)):
        assert groups_differ(one[row].tolist(), other[row].tolist()).p == pytest.approx(p)


def test_the_clusters_interval_measured_is_the_one_that_is_shipped(rng: np.random.Generator) -> None:
    packs = np.stack([worlds(RECORDED)[0].draw(rng, 4, 5) for _ in range(3)], axis=1)
    low, high = methods.student(packs.mean(axis=2))
    for row in range(4):
        values = {(str(pack), n): float(packs[row, pack, n]) for pack in range(3) for n in range(5)}
        shipped = mean_of(by_unit(values).values())
        assert (low[row], high[row]) == pytest.approx((shipped.low, shipped.high))


def test_wilsons_exact_coverage_is_what_simulation_finds(rng: np.random.Generator) -> None:
    intervals = np.array([(one.low, one.high) for one in (share_of(k, 10) for k in range(11))], dtype=float)
    place = int(np.flatnonzero(np.isclose(RATES, 0.3))[0])
    drawn = intervals[rng.binomial(10, 0.3, 20_000)]
    held = np.mean((drawn[:, 0] <= 0.3) & (drawn[:, 1] >= 0.3))
    assert covered(intervals, 10)[place] == pytest.approx(held, abs=0.01)
    assert {one.simulations for one in wilson(5)} == {0}


def test_a_share_comes_with_its_monte_carlo_error() -> None:
    assert Result("coverage", "mean", "w", True, 5, "m", 0.9, 900).error == pytest.approx(0.01)
    assert Result("coverage", "rate", "w", True, 5, "m", 0.9, 0).error == 0.0


def test_an_experiment_is_the_same_when_simulated_again() -> None:
    simulations = Simulations(40, 8)
    one, other = (list(means(worlds(RECORDED)[2], 5, simulations, np.random.default_rng(1))) for _ in range(2))
    assert one == other


def test_students_t_holds_where_its_assumptions_nearly_do_and_fails_where_reruns_are_rare(rng: np.random.Generator) -> None:
    plain, *_, rare, _, _ = worlds(RECORDED)
    simulations = Simulations(2_000, 100)
    found = {world.name: next(iter(means(world, 10, simulations, rng))).share for world in (plain, rare)}
    assert found[plain.name] > 0.93 > found[rare.name]


def test_an_arm_against_itself_is_found_different_one_time_in_twenty(rng: np.random.Generator) -> None:
    for one in false_positives(null_worlds(RECORDED)[0], 10, Simulations(4_000, 4_000), rng):
        assert one.share < 0.06 + 2 * one.error, one.method


def test_a_trial_is_no_unit_of_what_is_said_of_packs_at_large(rng: np.random.Generator) -> None:
    by_pack, by_trial, _ = clusters(5, 0.3, RECORDED, Simulations(4_000, 100), rng)
    assert by_pack.share > 0.9 > 0.8 > by_trial.share


def test_the_report_is_the_same_when_made_again_and_leaves_nothing_undefined(tmp_path: Path) -> None:
    simulations = Simulations(8, 4)
    results = [*everything(RECORDED, simulations), *exactly()]
    for name in ("one", "other"):
        write(tmp_path / name, results, RECORDED, simulations)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["README.md", "calibration.csv", "coverage.png", "coverage.svg"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    text = (tmp_path / "one" / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"\b(nan|inf)\b|[{}]", text) and "SIMULATED" in text


def test_the_limits_that_are_shown_are_those_that_were_measured() -> None:
    worst: dict[tuple[str, int, bool], float] = {}
    for row in committed():
        of_means = (row["about"], row["method"]) in SHOWN
        if of_means or row["method"] == "Wilson":
            key = ("mean" if of_means else "rate", int(row["n"]), row["recorded"] == "True")
            worst[key] = min(worst.get(key, 1.0), float(row["share"]))
    means = {n: (round(worst["mean", n, True], 4), round(worst["mean", n, False], 4)) for n in COVERAGE_OF_MEANS}
    assert means == {n: (one.recorded, one.beyond) for n, one in COVERAGE_OF_MEANS.items()}
    assert {n: round(worst["rate", n, False], 4) for n in COVERAGE_OF_RATES} == dict(COVERAGE_OF_RATES)
    flips = [row for row in committed() if row["method"] == "sign-flip" and row["about"] == "paired test"]
    highest = {n: max(float(row["share"]) for row in flips if int(row["n"]) == n) for n in FALSE_POSITIVES}
    assert {n: round(share, 4) for n, share in highest.items()} == dict(FALSE_POSITIVES)
    sizes = {n for _, n, _ in worst}
    assert sizes == set(COVERAGE_OF_MEANS) == set(COVERAGE_OF_RATES)


def test_below_ten_values_no_bootstrap_interval_holds_more_than_the_one_that_tables_show() -> None:
    shares = {
        (row["world"], int(row["n"]), row["method"]): float(row["share"]) for row in committed() if row["about"] == "mean"
    }
    for (world, n, method), share in shares.items():
        if method in ("percentile", "BCa") and n < 10:
            assert share < shares[world, n, "Student t"] + 0.02, (world, n, method)


def test_the_sign_flip_test_keeps_its_level_where_an_arm_meets_its_like() -> None:
    found = [row for row in committed() if row["method"] == "sign-flip" and row["world"].startswith("A/A")]
    assert len(found) > 10
    for row in found:
        assert float(row["share"]) <= 0.06 + 2 * float(row["error"]), row
