"""Simulated experiments with known truth: how often an interval holds it, and how often a test finds what is not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from calibration import methods
from calibration.methods import INTERVALS, RATIOS, RESAMPLING, TESTS, Ends, Values
from calibration.recoveries import recovery_nulls, recovery_pairs, recovery_worlds, solved_worlds, user_pairs, user_worlds
from calibration.worlds import TOKENS, PairedWorld, Recorded, World, null_worlds, paired_worlds, worlds

from bench.read.analysis.statistics import Mean, holm, required_pairs
from bench.read.analysis.statistics.power import POWER, power_of

VARIANTS = (2, 3, 5, 10, 20, 40, 164)
"""5 and 10 repetitions of one task, or one each of 20, 40 and 164 tasks; 2 and 3 where few faults were effective."""
TASKS = (3, 5, 10, 20, 40)
FAMILY = 6
CHUNK = 500
"""Experiments resampled at a time: 500 x 9999 means are 40 MB."""


@dataclass(frozen=True)
class Simulations:
    """The sizes of a calibration: how many experiments there are for a method that is cheap, and for one that resamples; how
    often labels are exchanged, and pairs drawn anew, of a recorded run. `seed` is the worlds'."""

    plain: int = 10_000
    resampling: int = 2_000
    exchanges: int = 2_000
    redrawn: int = 500
    seed: int = 4

    @classmethod
    def of_about(cls, experiments: int) -> Simulations:
        few = max(1, experiments // 5)
        return cls(experiments, few, few, few)

    def of(self, method: str) -> int:
        return self.resampling if method in RESAMPLING else self.plain


@dataclass(frozen=True)
class Result:
    """One method in one world at one size.

    kind    what the share is of: coverage, or false positives
    measure what the values are of, where there are worlds of several
    hits    of so many simulations; 0 simulations: summed over all outcomes, exact
    width   of the interval by that of Student's t, in the median; None where nothing is compared
    wide    the same, exceeded by one interval in twenty
    flat    the share of intervals without width: misses, unless the truth is just there
    absent  the share of experiments without an interval, of which the share above is not
    """

    kind: str
    about: str
    world: str
    recorded: bool
    n: int
    method: str
    share: float
    simulations: int
    width: float | None = None
    wide: float | None = None
    flat: float | None = None
    absent: float | None = None
    measure: str = ""

    @property
    def error(self) -> float:
        """The Monte-Carlo standard error of the share."""
        return math.sqrt(self.share * (1 - self.share) / self.simulations) if self.simulations else 0.0


def everything(recorded: Recorded, simulations: Simulations, sizes: Sequence[int] = VARIANTS) -> Iterator[Result]:
    for n in sizes:
        for number, world in enumerate((*worlds(recorded), *recovery_worlds(), *user_worlds())):
            yield from means(world, n, simulations, _rng(simulations, 1, n, number))
        for number, pair in enumerate((*paired_worlds(recorded), *recovery_pairs(), *user_pairs())):
            yield from differences(pair, n, simulations, _rng(simulations, 2, n, number))
        for number, pair in enumerate((*paired_worlds(recorded), *recovery_pairs(), *solved_worlds(), *user_pairs())):
            yield from ratios(pair, n, simulations, _rng(simulations, 3, n, number))
        for number, pair in enumerate((*null_worlds(recorded), *recovery_nulls())):
            yield from false_positives(pair, n, simulations, _rng(simulations, 4, n, number))
    yield from family(recorded, simulations, _rng(simulations, 5))
    for tasks in TASKS:
        for spread in (0.3, 1.0):
            yield from clusters(tasks, spread, recorded, simulations, _rng(simulations, 6, tasks))
    for n in (5, 10, 20):
        yield from pilots(n, simulations, _rng(simulations, 7, n))


def means(world: World, n: int, simulations: Simulations, rng: np.random.Generator) -> Iterator[Result]:
    values = world.draw(rng, simulations.plain, n)
    usual = _widths(methods.student(values))
    rivals = INTERVALS if world.measure != "score" else INTERVALS | {"t of the logit": methods.of_logit}
    for name, interval in rivals.items():
        ends = chunked(interval, values[: simulations.of(name)], name)
        yield _covered("mean", world, n, name, ends, world.mean, usual)


def differences(world: PairedWorld, n: int, simulations: Simulations, rng: np.random.Generator) -> Iterator[Result]:
    left, right = world.draw(rng, simulations.plain, n)
    truth = world.means[0] - world.means[1]
    usual = _widths(methods.student(left - right))
    for name in ("Student t", "percentile", "BCa"):
        ends = chunked(INTERVALS[name], (left - right)[: simulations.of(name)], name)
        yield _covered("paired difference", world, n, name, ends, truth, usual)


def ratios(world: PairedWorld, n: int, simulations: Simulations, rng: np.random.Generator) -> Iterator[Result]:
    left, right = world.draw(rng, simulations.plain, n)
    for name, interval in RATIOS.items():
        ends = interval(left, right)
        yield _covered("ratio of paired means", world, n, name, ends, world.means[0] / world.means[1])


def false_positives(world: PairedWorld, n: int, simulations: Simulations, rng: np.random.Generator) -> Iterator[Result]:
    left, right = world.draw(rng, simulations.plain, n)
    for name, test in TESTS.items():
        p = chunked(test, (left - right)[: simulations.of(name)], name)
        yield _found("paired test", world, n, name, p)


def family(recorded: Recorded, simulations: Simulations, rng: np.random.Generator) -> Iterator[Result]:
    """Yield how often any of six comparisons of A/A arms is a false finding, as they are and after Holm's correction."""
    n, (world, *_) = 10, null_worlds(recorded)
    tests = []
    for _ in range(FAMILY):
        left, right = world.draw(rng, simulations.resampling, n)
        tests.append(methods.sign_flip(left - right))
    ps = np.stack(tests, axis=1)
    adjusted = np.array([list(holm(dict(enumerate(row.tolist()))).values()) for row in ps])
    for name, least in (("each by itself", ps.min(axis=1)), ("Holm", adjusted.min(axis=1))):
        yield _found(f"any of {FAMILY} sign-flip tests", world, n, name, least)


def clusters(
    tasks: int, spread: float, recorded: Recorded, simulations: Simulations, rng: np.random.Generator
) -> Iterator[Result]:
    """Yield the results of ten repetitions of each of so many tasks, whose own means are lognormal about the mean of all
    tasks."""
    repetitions, experiments = 10, simulations.plain // 4
    by_task = TOKENS * np.exp(rng.normal(size=(experiments, tasks, 1)) * spread - spread**2 / 2)
    noise = rng.normal(size=(experiments, tasks, repetitions)) * recorded.widest - recorded.widest**2 / 2
    values = by_task * np.exp(noise)
    world = World(f"tasks lognormal {spread:.1f}, 10 repetitions", spread < 1, TOKENS, lambda *_: values)
    units = {"a task a value": values.mean(axis=2), "a trial a value": values.reshape(experiments, -1)}
    for unit, each in units.items():
        for name in ("Student t", "t of the logarithm"):
            yield _covered("mean of tasks at large", world, tasks, f"{name}, {unit}", INTERVALS[name](each), TOKENS)


def pilots(n: int, simulations: Simulations, rng: np.random.Generator) -> Iterator[Result]:
    """Yield the share of pilots whose required number of pairs gives the power that was asked for. The differences are
    normal."""
    effect, experiments = 0.5, simulations.resampling // 4
    enough = {"plain": 0, "cautious": 0}
    least = next(pairs for pairs in range(2, 1000) if power_of(effect, pairs) >= POWER)
    for sd in rng.normal(size=(experiments, n)).std(axis=1, ddof=1).tolist():
        required = required_pairs(effect, Mean(n, 0.0, sd, None, None))
        if required:
            enough["plain"] += required.plain >= least
            enough["cautious"] += required.cautious >= least
    for name, hits in enough.items():
        yield Result("enough", "required pairs", "normal differences", True, n, name, hits / experiments, experiments)


def chunked(method: Callable[[Values], object], values: Values, name: str) -> Values:
    """Return the method's results. A method that resamples runs on a few experiments at a time."""
    parts = range(0, len(values), CHUNK) if name in RESAMPLING else [0]
    size = CHUNK if name in RESAMPLING else len(values)
    return np.concatenate([np.atleast_2d(np.asarray(method(values[part : part + size]))) for part in parts], axis=1)


def _covered(
    about: str,
    world: World | PairedWorld,
    n: int,
    method: str,
    ends: Iterable[Values],
    truth: float | Values,
    usual: Values | None = None,
) -> Result:
    """Return the coverage among the experiments that have an interval."""
    low, high = ends
    none = np.isnan(low)
    share = float(np.mean(((low <= truth) & (truth <= high))[~none])) if not none.all() else math.nan
    width, wide = (None, None) if usual is None else _compared((low, high), usual)
    flat = float(np.mean(low == high))
    absent = float(np.mean(none))
    return Result(
        *("coverage", about, world.name, world.recorded, n, method, share, len(low), width, wide, flat),
        absent=absent,
        measure=world.measure,
    )


def _compared(ends: Ends, usual: Values) -> tuple[float | None, float | None]:
    """Return the median and the 95% quantile of the widths, divided by those of the usual intervals where these are not 0."""
    usual = usual[: len(ends[0])]
    if not usual.any():
        return None, None
    ratios = _widths(ends)[usual > 0] / usual[usual > 0]
    median, high = np.quantile(ratios, (0.5, 0.95), method="nearest")
    return float(median), float(high)


def _found(about: str, world: World | PairedWorld, n: int, method: str, p: Values) -> Result:
    share = float(np.mean(p <= 0.05))
    return Result("false positives", about, world.name, world.recorded, n, method, share, p.size, measure=world.measure)


def _widths(ends: Ends) -> Values:
    with np.errstate(invalid="ignore"):  # a bootstrap-t may have both ends without bound
        return ends[1] - ends[0]


def _rng(simulations: Simulations, *place: int) -> np.random.Generator:
    """Return the generator of one experiment, so that a further experiment changes none of the others."""
    return np.random.default_rng((simulations.seed, *place))
