"""The framework time of live trials: a run's own, or of the recording that it answers from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.analysis.frames import Run
from bench.experiment.history import LiveSeconds


def lived_through(run: Run) -> list[tuple[str, LiveSeconds]]:
    """(model, its live seconds by arm), in the config's order; none of a model whose seconds nobody lived through."""
    found = [one for part in run.parts or (run,) for one in (*_own(part), *_recorded(part))]
    orders = [run.names(column) for column in ("scenario", "model", "plan", "architecture")]

    def place(one: tuple[str, LiveSeconds]) -> list[int]:
        model, arm = one
        names = (arm.scenario, model, arm.plan, arm.architecture)
        return [_rank(name, order) for name, order in zip(names, orders, strict=True)]

    return sorted(found, key=place)


def _own(run: Run) -> Iterator[tuple[str, LiveSeconds]]:
    live = run.trials[run.trials["timing"].eq("live") & run.trials["outcome"].ne("error")]
    for place, own in live.groupby(["model", "scenario", "architecture", "plan"], sort=False):
        model, scenario, architecture, plan = map(str, place)
        seconds = list(zip(own["latency_seconds"].tolist(), own["framework_seconds"].tolist(), strict=True))
        yield model, LiveSeconds.of(scenario, architecture, plan, seconds)


def _recorded(run: Run) -> Iterator[tuple[str, LiveSeconds]]:
    for model, history in run.manifest.recordings.items():
        yield from ((model, seconds) for seconds in history.live_seconds)


def _rank(name: str, order: Sequence[str]) -> int:
    """What the run itself has no trial of stands last."""
    return order.index(name) if name in order else len(order)


def shares_by(found: Sequence[tuple[str, LiveSeconds]]) -> Mapping[str, tuple[float, float]]:
    """Model -> the least and the most that framework time was of an arm's latency."""
    shares: dict[str, list[float]] = {}
    for model, arm in found:
        shares.setdefault(model, []).append(arm.share)
    return {model: (min(own), max(own)) for model, own in shares.items()}
