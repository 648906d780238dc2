"""The calibration measures the methods that the suite ships, in worlds whose truth is what it is said to be."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from calibration import exchange, methods
from calibration.clustered import clustered, drawn, rates
from calibration.exact import RATES, covered, exactly, wilson
from calibration.exchange import ANY, RUNS, Verdicts, exchanged, resampled
from calibration.experiments import Result, Simulations, clusters, everything, false_positives, means
from calibration.further import EFFECTS, Effects, breaking_even, further
from calibration.further import effects as effects_over_instances
from calibration.recoveries import recovery_nulls, recovery_pairs, recovery_worlds, solved_worlds, user_pairs, user_worlds
from calibration.report import read_back, write
from calibration.scorecard import DAMAGES, Damage, effects, mean_power, of_scorecards, passing
from calibration.scorecard import write as write_scorecard
from calibration.worlds import RECORDED, PairedWorld, World, null_worlds, paired_worlds, worlds
from calibration.worst import to_csv, worst
from scipy import stats

import bench
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import (
    Mean,
    Pair,
    amount_of,
    by_unit,
    generator,
    mean_of,
    paired_test,
    ratio_of_means,
    share_of,
)
from bench.read.analysis.statistics.limits import CALIBRATION_FILE, NARROW_COVERAGE, worst_coverages

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "reports" / "calibration" / "calibration.csv.gz"
FEW = Simulations(40, 8, 2, 2)
WORLDS = [*worlds(RECORDED), *recovery_worlds(), *user_worlds()]
PAIRS = [*paired_worlds(RECORDED), *null_worlds(RECORDED)]
RECOVERY_PAIRS = [*recovery_pairs(), *recovery_nulls(), *solved_worlds(), *user_pairs()]


def by_number(values: np.ndarray) -> dict[Pair, float]:
    return {("", number): value for number, value in enumerate(values.tolist())}


def named(world: World | PairedWorld) -> str:
    return f"{world.measure}: {world.name}"


@pytest.fixture(name="rng")
def _rng() -> np.random.Generator:
    return np.random.default_rng(11)


@cache
def committed() -> list[Result]:
    return read_back(gzip.decompress(REPORT.read_bytes()).decode())


def test_the_worlds_are_those_of_the_committed_report() -> None:
    of_worlds = {
        f"{result.measure}: {result.world}"
        for result in committed()
        if result.about in ("mean", "paired difference", "paired test", "ratio of paired means")
    }
    assert of_worlds == set(map(named, WORLDS)) | set(map(named, (*PAIRS, *RECOVERY_PAIRS)))
    page = " ".join(REPORT.with_name("README.md").read_text(encoding="utf-8").split())
    assert f"an arm by {RECORDED.spread:.2f} (sd of the logarithm, pooled), by {RECORDED.widest:.2f} in the widest" in page
    assert f"{RECORDED.rejected} of {RECORDED.attempts} monolithic replies" in page


@pytest.mark.parametrize("world", WORLDS, ids=named)
def test_a_worlds_mean_is_what_it_is_said_to_be(world: World, rng: np.random.Generator) -> None:
    values = world.draw(rng, 20_000, 1)
    assert abs(values.mean() - world.mean) < 4 * values.std() / np.sqrt(values.size)


@pytest.mark.parametrize("pair", [*PAIRS, *RECOVERY_PAIRS], ids=named)
def test_the_arms_of_a_pair_have_their_means(pair: PairedWorld, rng: np.random.Generator) -> None:
    for arm, mean in zip(pair.draw(rng, 20_000, 1), pair.means, strict=True):
        assert abs(arm.mean() - mean) <= 4 * arm.std() / np.sqrt(arm.size) + 1e-9 * mean


@pytest.mark.parametrize(
    "pair", [*PAIRS, *(candidate for candidate in RECOVERY_PAIRS if "unlike" in candidate.name)], ids=named
)
def test_the_arms_of_a_pair_have_a_seed_or_their_tasks_in_common(pair: PairedWorld, rng: np.random.Generator) -> None:
    left, right = pair.draw(rng, 20_000, 1)
    assert np.corrcoef(left.ravel(), right.ravel())[0, 1] > 0.02


SHIPPED: list[tuple[str, Callable[[np.ndarray], methods.Ends], Callable[[np.ndarray], Mean]]] = [
    ("Student t", methods.student, mean_of),
    ("t of the logarithm", methods.of_logarithm, amount_of),
    ("t of the logit", methods.of_logit, lambda values: amount_of(values, "score")),
]


@pytest.mark.parametrize("n", [2, 3, 5, 10, 30])
@pytest.mark.parametrize(("name", "interval", "shipped"), SHIPPED, ids=[name for name, _, _ in SHIPPED])
def test_the_intervals_measured_are_those_that_are_shipped(
    name: str,
    interval: Callable[[np.ndarray], methods.Ends],
    shipped: Callable[[np.ndarray], Mean],
    n: int,
    rng: np.random.Generator,
) -> None:
    score = name == "t of the logit"
    for world in (world for world in WORLDS if (world.measure == "score") is score):
        values = world.draw(rng, 4, n)
        for low, high, sample in zip(*interval(values), values, strict=True):
            exact = shipped(sample)
            assert (low, high) == pytest.approx((exact.low, exact.high), rel=1e-9), world.name


@pytest.mark.parametrize(("method", "interval"), [("percentile", methods.percentile), ("BCa", methods.bca)])
def test_the_rival_bootstraps_are_scipys(
    method: Literal["percentile", "BCa"], interval: Callable[[np.ndarray], methods.Ends], rng: np.random.Generator
) -> None:
    values = worlds(RECORDED)[3].draw(rng, 1, 10)
    resampled = stats.bootstrap(
        (values[0],), np.mean, n_resamples=methods.BOOTSTRAPS, method=method, rng=generator()
    ).confidence_interval
    assert [float(end[0]) for end in interval(values)] == pytest.approx([resampled.low, resampled.high])


@pytest.mark.parametrize(("n", "near"), [(3, 1e-12), (5, 1e-12), (10, 1e-12), (30, 0.03)])
def test_the_tests_measured_are_those_that_are_shipped(n: int, near: float, rng: np.random.Generator) -> None:
    left, right = paired_worlds(RECORDED)[2].draw(rng, 4, n)
    measured = methods.sign_flip(left - right)
    for row in range(4):
        assert measured[row] == pytest.approx(paired_test(by_number(left[row]), by_number(right[row])).p, abs=near)


@pytest.mark.parametrize("pair", RECOVERY_PAIRS, ids=named)
def test_the_ratios_interval_measured_is_the_one_that_is_shipped(pair: PairedWorld, rng: np.random.Generator) -> None:
    left, right = pair.draw(rng, 20, 3)
    low, high = methods.ratio_of_logarithm(left, right)
    for row in range(20):
        shipped = ratio_of_means(by_number(left[row]), by_number(right[row]))
        ends = [np.nan if end is None else end for end in (shipped.low, shipped.high)]
        assert [low[row], high[row]] == pytest.approx(ends, nan_ok=True)


def test_the_clusters_interval_measured_is_the_one_that_is_shipped(rng: np.random.Generator) -> None:
    tasks = np.stack([worlds(RECORDED)[0].draw(rng, 4, 5) for _ in range(3)], axis=1)
    low, high = methods.of_logarithm(tasks.mean(axis=2))
    for row in range(4):
        values = {(str(task), n): float(tasks[row, task, n]) for task in range(3) for n in range(5)}
        shipped = amount_of(by_unit(values).values())
        assert (low[row], high[row]) == pytest.approx((shipped.low, shipped.high))


@pytest.mark.parametrize("alike", [0.0, 0.3, 1.0])
def test_outputs_hold_at_their_rate_and_are_as_alike_as_is_said(alike: float, rng: np.random.Generator) -> None:
    held = drawn(rng, (1, 20_000, 2), 0.2, alike)[0]
    assert held.mean() == pytest.approx(0.2, abs=0.02)
    assert np.corrcoef(held.T)[0, 1] == pytest.approx(alike, abs=0.03)


def test_outputs_that_are_alike_are_no_units_of_a_rate(rng: np.random.Generator) -> None:
    by_instance, by_itself = rates(drawn(rng, (400, 10, 4), 0.2, 1.0), 0.2, "all alike")
    assert by_instance.share > 0.93 > 0.85 > by_itself.share


def test_wilsons_exact_coverage_is_what_simulation_finds(rng: np.random.Generator) -> None:
    intervals = np.array([(share.low, share.high) for share in (share_of(k, 10) for k in range(11))], dtype=float)
    place = int(np.flatnonzero(np.isclose(RATES, 0.3))[0])
    drawn = intervals[rng.binomial(10, 0.3, 20_000)]
    held = np.mean((drawn[:, 0] <= 0.3) & (drawn[:, 1] >= 0.3))
    assert covered(intervals, 10)[place] == pytest.approx(held, abs=0.01)
    assert {result.simulations for result in wilson(5)} == {0}


def test_a_share_comes_with_its_monte_carlo_error() -> None:
    assert Result("coverage", "mean", "w", True, 5, "m", 0.9, 900).error == pytest.approx(0.01)
    assert Result("coverage", "rate", "w", True, 5, "m", 0.9, 0).error == 0.0


def test_an_experiment_is_the_same_when_simulated_again() -> None:
    simulations = Simulations(40, 8)
    left, right = (list(means(worlds(RECORDED)[2], 5, simulations, np.random.default_rng(1))) for _ in range(2))
    assert left == right


def test_students_t_holds_where_its_assumptions_nearly_do_and_fails_where_reruns_are_rare(rng: np.random.Generator) -> None:
    plain, *_, rare, _, _ = worlds(RECORDED)
    simulations = Simulations(2_000, 100)
    coverage = {world.name: next(iter(means(world, 10, simulations, rng))).share for world in (plain, rare)}
    assert coverage[plain.name] > 0.93 > coverage[rare.name]


def test_an_arm_against_itself_is_found_different_one_time_in_twenty(rng: np.random.Generator) -> None:
    for result in false_positives(null_worlds(RECORDED)[0], 10, Simulations(4_000, 4_000), rng):
        assert result.share < 0.06 + 2 * result.error, result.method


def test_a_trial_is_no_unit_of_what_is_said_of_tasks_at_large(rng: np.random.Generator) -> None:
    coverage = {result.method: result.share for result in clusters(5, 0.3, RECORDED, Simulations(4_000, 100), rng)}
    assert coverage["t of the logarithm, a task a value"] > 0.9 > 0.8 > coverage["t of the logarithm, a trial a value"]


def test_a_break_evens_interval_holds_the_truth_where_every_pair_has_its_passes_and_rounds(rng: np.random.Generator) -> None:
    assert breaking_even(10, 0.0, 0.0, 60, rng).share > 0.85


@pytest.mark.parametrize(("mean", "draw"), [each[2:] for each in EFFECTS], ids=[each[0] for each in EFFECTS])
def test_effects_over_instances_have_the_mean_that_is_said(mean: float, draw: Effects, rng: np.random.Generator) -> None:
    values = draw(rng, (1, 20_000))
    assert abs(values.mean() - mean) < 4 * values.std() / np.sqrt(values.size)


def test_an_effects_interval_holds_where_instances_are_many_and_misses_where_they_are_two() -> None:
    few, many = (next(effects_over_instances(Simulations(200, 100), (n,))).share for n in (2, 20))
    assert few < 0.8 < 0.88 < many


def test_an_interval_without_width_counts_for_none_of_those_with_width() -> None:
    """A tenth has no interval, and a fifth has one without width; of the other seven tenths six hold the truth."""
    result = Result("coverage", "mean", "w", False, 5, "t of the logarithm", 6 / 9, 90, flat=0.2, absent=0.1, measure="retry")
    flat = Result("coverage", "mean", "v", False, 5, "t of the logarithm", 0.0, 90, flat=1.0, absent=0.0, measure="retry")
    [cell] = worst([result, flat])
    assert cell.beyond == round(6 / 7, 4)


@pytest.mark.parametrize("alike", [0.0, 0.3, 1.0])
def test_pass_hats_truth_is_how_often_all_trials_of_an_instance_come_right(alike: float, rng: np.random.Generator) -> None:
    held = drawn(rng, (1, 20_000, 4), 0.7, alike)[0]
    assert mean_power(0.7, alike, 4) == pytest.approx(held.all(axis=1).mean(), abs=0.015)


@pytest.mark.parametrize("world", DAMAGES, ids=lambda world: world.name)
def test_a_worlds_damage_for_a_crash_is_what_it_is_said_to_be(world: Damage, rng: np.random.Generator) -> None:
    above, below = world.draw(rng, 1, 20_000)
    assert above.sum() / below.sum() == pytest.approx(world.truth, rel=0.05)


def test_the_scorecards_intervals_hold_where_instances_are_many_and_not_all_alike(rng: np.random.Generator) -> None:
    for effect in effects(Damage(2.5, 0.2), 400, 20, rng):
        assert effect.share > 0.92, effect.method
    assert passing(drawn(rng, (400, 20, 5), 0.5, 0.3), 2, mean_power(0.5, 0.3, 2), "").share > 0.92


def test_the_scorecards_part_is_the_same_when_made_again(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_scorecard(tmp_path / name, list(of_scorecards(FEW, (5,))), FEW)
    for name in ("scorecard.md", "scorecard.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert not re.search(r"\b(nan|inf)\b|[{}]", (tmp_path / "one" / "scorecard.md").read_text(encoding="utf-8"))


# A/A and power


@cache
def reference_run() -> Run:
    return bench.load_run(ROOT / "results" / RUNS[0])


def values_of(run: Run) -> dict[tuple[str, ...], list[tuple[str, int]]]:
    """By pair: the tokens of each architecture."""
    by_pair: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for row in run.trials[[*exchange.PAIR, "architecture", "tokens"]].itertuples(index=False):
        by_pair.setdefault(tuple(map(str, row[:-2])), []).append((row[-2], row[-1]))
    return by_pair


def test_exchanged_labels_stay_in_their_pair_and_each_is_there_once(rng: np.random.Generator) -> None:
    before, after = values_of(reference_run()), values_of(exchanged(reference_run(), rng))
    assert before.keys() == after.keys() and before != after
    for pair, values in before.items():
        for column in (0, 1):
            assert sorted(row[column] for row in values) == sorted(row[column] for row in after[pair])


def test_every_order_of_the_labels_is_as_likely(rng: np.random.Generator) -> None:
    orders: dict[tuple[str, ...], int] = {}
    for _ in range(30):
        for values in values_of(exchanged(reference_run(), rng)).values():
            order = tuple(name for name, _ in sorted(values, key=lambda row: row[1]))
            orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 6 and stats.chisquare(list(orders.values())).pvalue > 1e-4


def test_pairs_drawn_anew_are_whole_pairs_of_the_run(rng: np.random.Generator) -> None:
    before, after = values_of(reference_run()), values_of(resampled(reference_run(), rng))
    assert before.keys() == after.keys()
    known = {tuple(sorted(values)) for values in before.values()}
    assert all(tuple(sorted(values)) in known for values in after.values())
    assert len({tuple(sorted(values)) for values in after.values()}) < len(known)


def verdicts_committed() -> Iterator[dict[str, str]]:
    with REPORT.with_name("verdicts.csv").open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def test_where_no_architecture_differs_a_verdict_is_false_in_no_more_than_six_of_a_hundred() -> None:
    rows = list(verdicts_committed())
    assert {row["Run"] for row in rows} == set(RUNS)
    for row in rows:
        name, exchanges, false = row["Claim"], int(row["False, labels exchanged n"]), int(row["False, labels exchanged k"])
        assert exchanges >= 2_000
        upper = Verdicts("", name, 0, "", false, exchanges).upper
        assert upper <= 0.06 and row["Upper limit"] == f"{upper:.1%}", name


def test_and_each_verdict_of_the_reference_run_is_reached_again_in_two_of_three() -> None:
    rows = [row for row in verdicts_committed() if row["Run"] == RUNS[0]]
    decided = [row for row in rows if row["Verdict"] in exchange.ONE_SIDED]
    assert len(decided) > 5 and ANY in {row["Claim"] for row in rows}
    for row in decided:
        assert float(row["Reached, pairs drawn anew"]) > 2 / 3, row["Claim"]


# The report


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.endurance)])
def test_the_report_is_the_same_when_made_again_and_leaves_nothing_undefined(
    drawn: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not drawn:
        request.getfixturevalue("undrawn")
    results = [
        *everything(RECORDED, FEW, (5,)),
        *exactly((5,)),
        *clustered(FEW, ((5, 2),)),
        *further(FEW, (5,)),
        *effects_over_instances(FEW, (5,)),
    ]
    verdicts = list(exchange.verdicts(RUNS[0], reference_run(), FEW, np.random.default_rng(1)))
    for name in ("one", "other"):
        write(tmp_path / name, results, verdicts, RECORDED, FEW)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["README.md", "calibration.csv.gz", "coverage.png", "verdicts.csv", "worst.md"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    text = (tmp_path / "one" / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"\b(nan|inf)\b|[{}]", text) and "SIMULATED" in text


def test_the_limits_that_are_shown_are_those_that_were_measured() -> None:
    assert to_csv(worst(committed())) == CALIBRATION_FILE.read_text(encoding="utf-8")


def test_below_164_values_the_kinds_are_marked_that_the_concepts_name() -> None:
    amounts = {f"{kind} of {name}" for kind in ("mean", "difference") for name in ("spent", "first_round", "price")}
    held = {
        about: {n: min(cell.recorded, cell.beyond) for n, cell in cells.items()} for about, cells in worst_coverages().items()
    }
    del held["sign-flip test"]
    always = {about for about, cells in held.items() if all(share < NARROW_COVERAGE for n, share in cells.items() if n < 164)}
    assert always == {"ratio of means", *amounts}
    assert all(held[about][164] >= NARROW_COVERAGE for about in always)
    rates = ("rate", "rate by instance", "difference of rates")
    from_ten = (*rates, "mean of score", "difference of score", "difference of effect")
    assert all(share >= NARROW_COVERAGE for about in from_ten for n, share in held[about].items() if n >= 10)
    page = " ".join((ROOT / "docs" / "concepts.md").read_text(encoding="utf-8").split())
    assert "below 164 values all of them do, except retry tokens" in page
    assert "From ten values on, rates, scores, differences of these, and effects over instances have no †" in page


def shares(about: str) -> dict[tuple[str, str, int, str], float]:
    return {
        (result.measure, result.world, result.n, result.method): result.share for result in committed() if result.about == about
    }


def test_below_ten_values_no_percentile_or_bca_interval_holds_more_than_the_one_that_tables_show() -> None:
    coverage = shares("mean")
    for (measure, world, n, method), share in coverage.items():
        if method in ("percentile", "BCa") and n < 10:
            shown = "t of the logit" if measure == "score" else "t of the logarithm"
            assert share < coverage[measure, world, n, shown] + 0.06, (world, n, method)


@pytest.mark.parametrize(
    ("about", "shown", "rival"),
    [("mean", "t of the logarithm", "Student t"), ("ratio of paired means", "t of the logarithm", "Fieller")],
)
def test_the_method_that_is_shown_holds_the_truth_more_often_in_the_mean_over_all_worlds(
    about: str, shown: str, rival: str
) -> None:
    coverage = {place: share for place, share in shares(about).items() if place[0] != "score"}
    for n in (5, 10, 20, 40):
        sign_flips, other = (
            np.nanmean([share for (*_, size, method), share in coverage.items() if (size, method) == (n, name)])
            for name in (shown, rival)
        )
        assert sign_flips > other, n


def test_the_sign_flip_test_keeps_its_level_where_an_arm_meets_its_like() -> None:
    chosen = [result for result in committed() if result.method == "sign-flip" and result.world.startswith("A/A")]
    assert len(chosen) > 10
    for result in chosen:
        assert result.share <= 0.06 + 2 * result.error, result


def test_the_scorecards_page_says_how_often_its_intervals_hold() -> None:
    results = read_back(REPORT.with_name("scorecard.csv").read_text(encoding="utf-8"))
    page = " ".join((ROOT / "docs" / "scorecard.md").read_text(encoding="utf-8").split())

    def least(about: str, *worlds: str) -> str:
        chosen = [result for result in results if result.about == about and result.world.startswith(worlds or "")]
        return f"{min(result.share for result in chosen):.0%}"

    assert f"shares in {least('share of trials')} at the least" in page
    assert f"effects for each crash in {least('effects for a crash')}" in page
    assert f"and of pass^k in {least('pass^k', 'k=4')} for k = 4" in page
