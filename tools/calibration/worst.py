"""The worst that was found of what the suite shows: what `bench.analysis.statistics.limits` reads, and says below tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator

from calibration.experiments import Result

SHOWN = {
    ("mean", "t of the logarithm"): "mean of {measure}",
    ("mean", "t of the logit"): "mean of {measure}",
    ("paired difference", "Student t"): "difference of {measure}",
    ("ratio of paired means", "t of the logarithm"): "ratio of means",
    ("rate", "Wilson"): "rate",
    ("rate by instance", "Wilson, by instance"): "rate by instance",
    ("difference of paired rates", "Bonett-Price"): "difference of rates",
    ("difference of rates by instance", "Bonett-Price, by instance"): "difference of rates",
    ("paired test", "sign-flip"): "sign-flip test",
}
"""(about, method) of a result -> what a number is about; a score's mean is that of the logit."""


def worst(results: Iterable[Result]) -> str:
    """CSV: about, n, recorded, beyond. Where nothing lies beyond what was recorded, that is the same."""
    shares: dict[tuple[str, int], dict[bool, list[float]]] = {}
    for one in _shown(results):
        about = SHOWN[one.about, one.method].format(measure=one.measure)
        shares.setdefault((about, one.n), {}).setdefault(one.recorded, []).append(one.share)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(("about", "n", "recorded", "beyond"))
    for (about, n), found in sorted(shares.items()):
        pick: Callable[[list[float]], float] = max if about == "sign-flip test" else min
        known = {recorded: pick(own) for recorded, own in found.items()}
        ends = [known.get(recorded, known.get(not recorded, 0.0)) for recorded in (True, False)]
        writer.writerow((about, n, *(round(end, 4) for end in ends)))
    return written.getvalue()


def _shown(results: Iterable[Result]) -> Iterator[Result]:
    for one in results:
        of_another_kind = one.about == "mean" and (one.measure == "score") != (one.method == "t of the logit")
        of_all_rates = one.about == "rate" and one.world.startswith("mean")
        if (one.about, one.method) in SHOWN and not of_another_kind and not of_all_rates:
            yield one
