"""The intervals of the recovery scorecard and of the reliability surface, called as they are there: shares of trials, effects
for each failure, and pass^k. The unit is an instance, with all its trials.

PYTHONPATH=tools/reports python -m calibration.scorecard [FOLDER] [SIMULATIONS]

Writes this part alone, `scorecard.md` and `scorecard.csv`: a minute on one core.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from calibration.clustered import ALIKE, drawn
from calibration.experiments import Result, Simulations
from calibration.report import comma_separated, result_table
from calibration.worlds import Values

from bench.read.analysis.statistics import (
    PassHat,
    Ratio,
    Share,
    exact_share_by_instance,
    pass_hat,
    ratio_of_means,
    ratio_of_sums,
)
from bench.read.render.table import markdown

INSTANCES = (2, 5, 10, 20, 40)
TRIES = 5
"""Trials of an instance: in `configs/scorecard.toml` one for each plan that crashes it."""
RATES = (0.5, 0.9, 0.98)
"""Of trials that come right."""
PASS_HAT_KS = (1, 2, 4)
CRASHES = (15, 45)
"""Of an instance: three to nine effects, in each of five trials."""
TITLES = {
    "share of trials": "Coverage of the exact 95% interval of a share of trials, by number of instances",
    "effects for a crash": "Coverage of 95% intervals of effects for a crash, by number of instances",
    "pass^k": "Coverage of the 95% interval of pass^k, by number of instances",
}
PREFACE = """# Calibration of the scorecard's intervals

SIMULATED, in worlds whose truth is known. `nox -s calibrate` makes it again, and `PYTHONPATH=tools/reports python -m
calibration.scorecard` this part alone. N is the number of instances, each with {tries} trials, or
with one where that is said. *Alike* is the correlation of two trials of one instance, *unlike* the spread of the instances' own
rates (sd of the logarithm). *None*: samples without an interval, which stand in no share. (!) marks a coverage below 93%. The
shares are of {simulations:,} experiments. All numbers are in [scorecard.csv](scorecard.csv).

"""


@dataclass(frozen=True)
class Damage:
    """A world of damage. `rate` is that of effects damaged for each crash, `control` that of those which a control damages by
    itself, for each instance, and which are taken off."""

    rate: float
    unlike: float = 0.0
    control: float = 0.0

    @property
    def name(self) -> str:
        parts = (f"{self.rate:g} for a crash", *([f"unlike {self.unlike:g}"] if self.unlike else []))
        return ", ".join((*parts, *([f"less {self.control:g} in a control"] if self.control else [])))

    @property
    def truth(self) -> float:
        return self.rate - self.control / (sum(CRASHES) / 2)

    def draw(self, rng: np.random.Generator, experiments: int, instances: int) -> tuple[Values, Values]:
        """Return the effects beyond the control, and the crashes: a row for each experiment, a column for each instance."""
        shape = (experiments, instances)
        crashes = rng.integers(CRASHES[0], CRASHES[1] + 1, shape)
        by_instance = np.exp(rng.normal(size=shape) * self.unlike - self.unlike**2 / 2)
        return rng.poisson(self.rate * by_instance * crashes) - rng.poisson(self.control, shape), crashes


DAMAGES = (Damage(2.5, 0.2), Damage(0.5, 0.5), Damage(0.5, 0.5, 1.0), Damage(0.05, 0.5), Damage(0.05, 0.5, 1.0))


def of_scorecards(simulations: Simulations, sizes: Sequence[int] = INSTANCES) -> Iterator[Result]:
    for instances in sizes:
        for number, (rate, alike) in enumerate((rate, alike) for rate in RATES for alike in ALIKE):
            rng = np.random.default_rng((simulations.seed, 14, instances, number))
            held = drawn(rng, (simulations.resampling, instances, TRIES), rate, alike)
            yield share(held, rate, f"rate {rate:g}, alike {alike:g}")
            for k in PASS_HAT_KS:
                yield passing(held, k, mean_power(rate, alike, k), f"k={k}, rate {rate:g}, alike {alike:g}")
            if not alike:
                yield passing(held[:, :, :1], 1, rate, f"k=1, rate {rate:g}, one trial each")
        for number, world in enumerate(DAMAGES):
            rng = np.random.default_rng((simulations.seed, 15, instances, number))
            yield from effects(world, simulations.resampling, instances, rng)


def share(held: Values, rate: float, world: str) -> Result:
    _, instances, each = held.shape
    names = [str(instance) for instance in range(instances) for _ in range(each)]

    @cache
    def interval(counts: tuple[int, ...]) -> Share:
        return exact_share_by_instance(names, [place < count for count in counts for place in range(each)])

    intervals = [interval(tuple(counts)) for counts in np.sort(held.sum(axis=2)).tolist()]
    return _result("share of trials", world, instances, "Clopper-Pearson, by instance", rate, intervals)


def passing(held: Values, k: int, truth: float, world: str) -> Result:
    _, instances, each = held.shape

    @cache
    def interval(counts: tuple[int, ...]) -> PassHat:
        return pass_hat(k, [(count, each) for count in counts])

    intervals = [interval(tuple(counts)) for counts in np.sort(held.sum(axis=2)).tolist()]
    return _result("pass^k", world, instances, "t of the logit, or exact", truth, intervals)


def mean_power(rate: float, alike: float, k: int) -> float:
    """Return the mean over instances of their own rate to the power of k, as `drawn` draws these."""
    if alike == 0.0:
        return rate**k
    if alike == 1.0:
        return rate
    whole = 1 / alike - 1
    return math.prod((rate * whole + place) / (whole + place) for place in range(k))


def effects(world: Damage, experiments: int, instances: int, rng: np.random.Generator) -> Iterator[Result]:
    above, below = (values.tolist() for values in world.draw(rng, experiments, instances))
    summed = [ratio_of_sums(numerator, by) for numerator, by in zip(above, below, strict=True)]
    yield _result("effects for a crash", world.name, instances, "Student t of the sums", world.truth, summed)
    if not world.control:
        parted = [_ratio_of_means(numerator, by) for numerator, by in zip(above, below, strict=True)]
        yield _result("effects for a crash", world.name, instances, "t of the logarithm", world.truth, parted)


def _ratio_of_means(above: Sequence[float], below: Sequence[float]) -> Ratio:
    return ratio_of_means(dict(enumerate(above)), dict(enumerate(below)))


def _result(
    about: str, world: str, instances: int, method: str, truth: float, intervals: Sequence[Share | Ratio | PassHat]
) -> Result:
    ends = [(interval.low, interval.high) for interval in intervals if interval.low is not None and interval.high is not None]
    hits = sum(low <= truth + 1e-12 and truth - 1e-12 <= high for low, high in ends)
    held = hits / len(ends) if ends else math.nan
    absent = 1 - len(ends) / len(intervals)
    return Result("coverage", about, world, True, instances, method, held, len(intervals), absent=absent)


def write(folder: Path, results: Sequence[Result], simulations: Simulations) -> None:
    """Write scorecard.md and scorecard.csv. The same results give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [markdown(result_table(title, "coverage", about, "", results)) for about, title in TITLES.items()]
    page = PREFACE.format(tries=TRIES, simulations=simulations.resampling) + "\n".join(tables)
    (folder / "scorecard.md").write_text(page, encoding="utf-8")
    (folder / "scorecard.csv").write_text(comma_separated(results), encoding="utf-8")


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[3] / "reports" / "calibration"
    asked = Simulations.of_about(int(sys.argv[2])) if len(sys.argv) > 2 else Simulations()
    write(given, list(of_scorecards(asked)), asked)
