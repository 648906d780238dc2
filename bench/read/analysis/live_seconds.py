"""The framework time of live trials, from the run itself or from its recordings."""

from __future__ import annotations

from collections.abc import Iterator

from bench.read.analysis.frames import Run
from bench.record.history import LiveSeconds


def live_seconds_of(run: Run) -> list[tuple[str, LiveSeconds]]:
    """Return (model, its live seconds by arm), in the config's order. A model without live seconds is left out."""
    lived: list[tuple[str, LiveSeconds]] = []
    for part in run.recorded:
        lived += _live_rows(part)
        lived += ((model, arm) for model, history in part.manifest.recordings.items() for arm in history.live_seconds)
    orders = [run.names(column) for column in ("scenario", "model", "plan", "architecture")]

    def place(of: tuple[str, LiveSeconds]) -> list[int]:
        model, arm = of
        names = (arm.scenario, model, arm.plan, arm.architecture)
        # Names without a trial in this run come last.
        return [order.index(name) if name in order else len(order) for name, order in zip(names, orders, strict=True)]

    return sorted(lived, key=place)


def _live_rows(run: Run) -> Iterator[tuple[str, LiveSeconds]]:
    live = run.trials[run.trials["timing"].eq("live") & run.trials["outcome"].ne("error")]
    for place, group in live.groupby(["model", "scenario", "architecture", "plan"], sort=False):
        model, scenario, architecture, plan = map(str, place)
        seconds = list(zip(group["latency_seconds"].tolist(), group["framework_seconds"].tolist(), strict=True))
        yield model, LiveSeconds.of(scenario, architecture, plan, seconds)
