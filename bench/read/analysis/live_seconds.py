"""The seconds of live trials, with the framework's part, from the run itself or from its recordings."""

from __future__ import annotations

from bench.read.analysis.frames import Run
from bench.record.history import LiveSeconds


def live_seconds_of(run: Run) -> list[tuple[str, LiveSeconds]]:
    """Return (model, live seconds of its trials in one arm) for each arm with live trials, in the config's order.
    Trials that ended in an error are left out."""
    rows: list[tuple[str, LiveSeconds]] = []
    for part in run.recorded:
        live = part.trials[part.trials["timing"].eq("live") & part.trials["outcome"].ne("error")]
        for key, group in live.groupby(["model", "scenario", "architecture", "plan"], sort=False):
            model, scenario, architecture, plan = map(str, key)
            seconds = list(zip(group["latency_seconds"].tolist(), group["framework_seconds"].tolist(), strict=True))
            rows.append((model, LiveSeconds.of(scenario, architecture, plan, seconds)))
        rows += ((model, arm) for model, history in part.manifest.recordings.items() for arm in history.live_seconds)
    orders = [run.names(column) for column in ("scenario", "model", "plan", "architecture")]

    def ranks(row: tuple[str, LiveSeconds]) -> list[int]:
        """Return the ranks of an arm's names. Names without a trial in this run come last."""
        model, arm = row
        names = (arm.scenario, model, arm.plan, arm.architecture)
        return [order.index(name) if name in order else len(order) for name, order in zip(names, orders, strict=True)]

    return sorted(rows, key=ranks)
