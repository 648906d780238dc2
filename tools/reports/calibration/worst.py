"""The worst that was found of what the suite shows: `bench.read.analysis.statistics.limits` says it below tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from calibration.experiments import Result

from bench.read.analysis.statistics.limits import MEASURE_NAMES
from bench.read.render.table import Table

TEST = "sign-flip test"
FEWEST = 6
"""Pairs with which that test can find anything at 5%."""

SHOWN = {
    ("mean", "t of the logarithm"): "mean of {measure}",
    ("mean", "t of the logit"): "mean of {measure}",
    ("paired difference", "Student t"): "difference of {measure}",
    ("ratio of paired means", "t of the logarithm"): "ratio of means",
    ("rate", "Wilson"): "rate",
    ("rate by instance", "Wilson, by instance"): "rate by instance",
    ("difference of paired rates", "Bonett-Price"): "difference of rates",
    ("difference of rates by instance", "Bonett-Price, by instance"): "difference of rates",
    ("effect over instances", "expanded percentile"): "difference of {measure}",
    ("break-even", "expanded percentile"): "break-even",
    ("paired test", "sign-flip"): TEST,
}
"""(about, method) of a result -> what a number is about; a score's mean is that of the logit."""


@dataclass(frozen=True)
class Worst:
    """The lowest coverage of the intervals that have a width, or the highest share of false positives, in worlds like the
    recorded runs and in those beyond; where nothing lies beyond, that is the same."""

    about: str
    n: int
    recorded: float
    beyond: float


def worst(results: Iterable[Result]) -> list[Worst]:
    """Rounded to four digits. An interval without width is a miss that tables mark by itself, whatever N is."""
    shares: dict[tuple[str, int], dict[bool, list[float]]] = {}
    for result in _shown(results):
        about = SHOWN[result.about, result.method].format(measure=result.measure)
        shares.setdefault((about, result.n), {}).setdefault(result.recorded, []).append(_held(result))
    worst = []
    for (about, n), by_kind in sorted(shares.items()):
        pick: Callable[[list[float]], float] = max if about == TEST else min
        known = {recorded: round(pick(values), 4) for recorded, values in by_kind.items()}
        worst.append(Worst(about, n, *(known.get(kind, known.get(not kind, 0.0)) for kind in (True, False))))
    return worst


def to_csv(worst: Iterable[Worst]) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(("about", "n", "recorded", "beyond"))
    writer.writerows((cell.about, cell.n, cell.recorded, cell.beyond) for cell in worst)
    return written.getvalue()


def table(worst: Sequence[Worst]) -> Table:
    """Return a table with the kind of number down, and N across."""
    sizes = sorted({cell.n for cell in worst})
    cells = {(cell.about, cell.n): _cell(cell) for cell in worst}
    rows = tuple(
        (_named(about), *(cells.get((about, n), "–") for n in sizes)) for about in dict.fromkeys(cell.about for cell in worst)
    )
    title = "How often a 95% interval holds the truth (SIMULATED)"
    notes = (
        "the lowest in any world like the recorded runs, and, after the stroke, in any where failures are rarer or tasks more "
        f"unlike; {TEST}: the highest share of false positives at 5%",
        "of intervals with width: one without is marked by itself, at any N",
    )
    return Table("worst", title, ("Of", *(f"N={n}" for n in sizes)), rows, notes)


def _named(about: str) -> str:
    kind, _, measure = about.partition(" of ")
    return f"{kind} of {MEASURE_NAMES[measure]}" if measure in MEASURE_NAMES else about


def _cell(worst: Worst) -> str:
    beyond = f" / {worst.beyond:.1%}" if worst.beyond != worst.recorded else ""
    return f"{worst.recorded:.1%}{beyond}"


def _held(result: Result) -> float:
    """Return the share of intervals with width that hold the truth."""
    flat = (result.flat or 0.0) / (1 - (result.absent or 0.0))
    return result.share / (1 - flat)


def _shown(results: Iterable[Result]) -> Iterator[Result]:
    for result in results:
        of_another_kind = result.about == "mean" and (result.measure == "score") != (result.method == "t of the logit")
        of_all_rates = result.about == "rate" and result.world.startswith("mean")
        finds_nothing = (result.about == "paired test" and result.n < FEWEST) or result.flat == 1
        if (result.about, result.method) in SHOWN and not (of_another_kind or of_all_rates or finds_nothing):
            yield result
