"""Reliability over a horizon, decomposed: chance in the calls, damage without any error of the proposer, and single errors.

Y(t) is 1 if a trial is damaged by its t-th committed effect. *Variance of the call*: the mean over instances of the variance of
Y over sets of the proposer's draws, under the same faults. *Momentum*: the hazard with a proposer that never errs: the chance
that an effect damages a trial that was not damaged before. *Escape*: of trials with one wrong first reply and no fault, the
share that is damaged.

Damage is dated by the journal entry that did it; for a doubled effect, by the second entry. A lost effect has no entry: it is
dated by the first step that failed, else by the trial's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from itertools import product
from math import inf, isinf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.common.errors import ResultsError
from bench.common.paths import PACKS
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import exact_share_by_instance, percentiles, resampled
from bench.read.render.cells import BoundedNumber, Cell, Number, Rate
from bench.read.render.drawing import PALE, Picture, finish, legend_of_points, panels
from bench.read.render.labels import slug
from bench.read.render.marks import draw_value, signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import BootstrapMean, bootstrap_mean
from bench.record.damage import Harm
from bench.record.events import of_kind
from bench.record.reading import read_records, read_texts
from bench.record.record import TrialRecord, latest
from bench.record.world_events import Stepped, ToolCalled, WorldEnded
from bench.run.packs import load_pack
from bench.worlds.run.environment import Environment, World
from bench.worlds.run.environment.final import content_of

from ..rises import interaction, main_effect

HORIZONS = (5, 10, 20, 40, 80)
TRIAL = ["instance", "model", "plan", "repetition"]
PAIRS = ["instance", "repetition", "plan", "architecture", "rate"]


def onsets(run: Run) -> pd.DataFrame:
    """Return the trials in worlds with their proposer's error rate, the number of `effects` they committed, and their `onset`:
    the number of the effect that damages the trial, infinite if none does.

    Raises ResultsError if the run was merged from several, or has no such trial.
    """
    usable = run.trials[~run.trials["outcome"].isin(UNUSABLE) & run.trials["lives"].notna()]
    if run.folder is None or usable.empty:
        raise ResultsError("needs the trials in worlds of one run")
    rates = {model: float(run.parameters_of(model).shown.get("error_rate", 0.0)) for model in run.names("model")}
    dated = pd.DataFrame(_dated(run.folder, PACKS), columns=["trial", "effects", "onset"])
    names = usable[["trial", "scenario", "architecture", *TRIAL]].assign(rate=usable["model"].astype(str).map(rates))
    return names.astype({"architecture": str, "instance": str}).merge(dated, on="trial")


def _dated(folder: Path, packs: Sequence[Path]) -> Iterator[tuple[str, int, float]]:
    """Yield each trial with its number of effects and its onset."""
    texts = read_texts(folder)

    @cache
    def environment(scenario: str, instance: str) -> Environment:
        made: Environment = load_pack(scenario, packs, instance).environment
        return made

    for record in latest(each for each in read_records(folder) if isinstance(each, TrialRecord)):
        for ended in of_kind(record.events, WorldEnded):
            content = content_of(texts[ended.kept])
            with closing(World(environment(record.scenario, record.instance), content=content)) as world:
                effects = [entry.seq for entry in world.journal() if entry.is_effect]
                yield record.id, len(effects), onset_of(world.harms(), effects, effects_before_failure(record))


def effects_before_failure(record: TrialRecord) -> int | None:
    """Return how many effects had been committed when the first step failed. None if none failed."""
    done = 0
    for event in record.events:
        done += isinstance(event, ToolCalled) and event.outcome == "done" and event.access != "read"
        if isinstance(event, Stepped) and event.stage == "ended" and event.why:
            return done
    return None


def onset_of(harms: Mapping[str, Sequence[Harm]], effects: Sequence[int], failed: int | None) -> float:
    """Return the number of the first effect that did harm, from 1; infinite if none did.

    Args:
        harms: Kind of damage -> what it was counted from.
        effects: The entries of all effects, in order.
        failed: How many effects had been committed when the first step failed; None if none failed.
    """
    dates = [inf]
    for kind, each in harms.items():
        for harm in each:
            if not harm.entries:
                dates.append(len(effects) if failed is None else max(1, failed))
            else:
                entry = harm.entries[1] if kind == "doubled" and len(harm.entries) > 1 else harm.entries[0]
                dates.append(1 + effects.index(entry))
    return min(dates)


def damaged_by(trials: pd.DataFrame, horizon: int) -> BootstrapMean:
    """Return the share of trials that are damaged by effect `horizon`, as a mean over instances."""
    return _by_instance((trials["onset"] <= horizon).astype(float), trials["instance"])


def variance_of_call(trials: pd.DataFrame, horizon: int) -> BootstrapMean | None:
    """Return the mean over instances of the variance of Y over the sets of draws. None if there is only one set."""
    if trials["model"].nunique() < 2:
        return None
    by_faults = (trials["onset"] <= horizon).astype(float).groupby([trials["instance"], trials["repetition"]]).var(ddof=1)
    return _by_instance(by_faults, by_faults.index.get_level_values("instance"))


class Hazard(NamedTuple):
    """Trials that began to be damaged, effects at risk, and the ratio of both."""

    onsets: int
    at_risk: int
    by_effect: BoundedNumber


def hazard(trials: pd.DataFrame) -> Hazard:
    """Return the hazard of an effect, with an interval of resampled instances."""
    begun = (~trials["onset"].map(isinf)).astype(int)
    at_risk = trials[["onset", "effects"]].min(axis=1)
    sums = pd.DataFrame({"begun": begun, "at_risk": at_risk}).groupby(trials["instance"], sort=True).sum()
    onset_counts, risks = sums["begun"].to_numpy(float), sums["at_risk"].to_numpy(float)
    value = float(onset_counts.sum() / risks.sum())
    if len(sums) < 2 or not np.ptp(onset_counts / risks):
        return Hazard(int(onset_counts.sum()), int(risks.sum()), BoundedNumber(value, None, None, 4))
    again = np.concatenate([(weights @ onset_counts) / (weights @ risks) for weights in resampled(len(sums))])
    return Hazard(int(onset_counts.sum()), int(risks.sum()), BoundedNumber(value, *percentiles(again, len(sums)), 4))


def _by_instance(values: pd.Series[float], instances: pd.Series[Any] | pd.Index[Any]) -> BootstrapMean:
    return bootstrap_mean({str(name): float(mean) for name, mean in values.groupby(instances).mean().items()})


def one_wrong_reply(run: Run, trials: pd.DataFrame) -> pd.DataFrame:
    """Return the fault-free trials whose proposer was wrong in exactly one first reply. All arms draw the same, so the count is
    taken from the arm that rejected most first replies."""
    second = run.calls[run.calls["attempt"].eq(2)].astype({"instance": str})
    rejected = second.groupby([*TRIAL, "architecture"], observed=True).size().groupby(level=TRIAL, observed=True).max()
    once = rejected[rejected == 1].reset_index()[TRIAL]
    return trials[trials["plan"].eq("none") & trials["rate"].gt(0)].merge(once.astype({"instance": str}), on=TRIAL)


# Tables

NOTES = (
    "damaged by effect t: the share of trials, mean over instances; variance of the call at the last horizon: of five sets of "
    "draws under the same faults, mean over instances; 95% intervals are of resampled instances",
    "SIMULATED: error rates and faults are declared; what is learned from a rejection was measured on one model elsewhere",
)
GAPS = (
    "gap: the share of trials damaged by the last horizon under the first arm less that under the second, mean over instances",
    "grows by: the gap at the least error rate, less that at the greatest; 95% intervals are of resampled instances",
)


def tables(run: Run) -> Iterator[Table]:
    trials = onsets(run)
    if trials["rate"].nunique() > 1:
        yield _decomposed(run, trials)
        yield _momentum(run, trials)
        yield _gaps(run, trials)
    if len(escaped := one_wrong_reply(run, trials)):
        yield _escape(run, escaped)


def _decomposed(run: Run, trials: pd.DataFrame) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, rate in product(run.names("architecture"), sorted(set(trials["rate"].tolist()))):
        arm = trials[(trials["architecture"] == name) & (trials["rate"] == rate)]
        variance = variance_of_call(arm, HORIZONS[-1])
        shares = (damaged_by(arm, horizon).cell() for horizon in HORIZONS)
        rows.append((name, Number(rate, 2), len(arm), *shares, variance.cell() if variance else "one set"))
    return Table(
        name="study-momentum",
        title="Damaged by the t-th effect, and the variance of the call (SIMULATED)",
        columns=("Architecture", "Error rate", "Trials", *(f"t = {horizon}" for horizon in HORIZONS), "Variance of the call"),
        rows=tuple(rows),
        notes=NOTES,
    )


def _momentum(run: Run, trials: pd.DataFrame) -> Table:
    never = trials[trials["rate"].eq(0)]
    arms = ((name, hazard(never[never["architecture"] == name])) for name in run.names("architecture"))
    columns = (
        TableColumn[tuple[str, Hazard]]("Architecture", lambda arm: arm[0]),
        TableColumn[tuple[str, Hazard]]("Onsets", lambda arm: arm[1].onsets),
        TableColumn[tuple[str, Hazard]]("Effects at risk", lambda arm: arm[1].at_risk),
        TableColumn[tuple[str, Hazard]]("Hazard by effect", lambda arm: arm[1].by_effect),
    )
    title = "Momentum: damage with a proposer that never errs (SIMULATED)"
    notes = ("each trial counts up to its first damage; 95% intervals are of resampled instances",)
    return table_of("study-momentum-hazard", title, columns, arms, notes)


def _gaps(run: Run, trials: pd.DataFrame) -> Table:
    damaged = trials.assign(damaged=(trials["onset"] <= HORIZONS[-1]).astype(float))
    means = damaged.groupby(PAIRS, observed=True)["damaged"].mean().reset_index()
    rates = sorted(means["rate"].unique(), reverse=True)
    rows: list[tuple[Cell, ...]] = []
    for weak, strong in _compared(run):
        by_rate = (main_effect(means[means["rate"] == rate], "damaged", "architecture", weak, strong, PAIRS) for rate in rates)
        least, greatest = {"architecture": weak, "rate": rates[-1]}, {"architecture": strong, "rate": rates[0]}
        grows = interaction(means, "damaged", ("architecture", "rate"), least, greatest, PAIRS)
        rows.append((f"{weak}, {strong}", *(rise.cell() for rise in by_rate), grows.cell()))
    return Table(
        name="study-momentum-gaps",
        title="Does it matter more which pattern or boundary there is where the proposer errs less? (SIMULATED)",
        columns=("Arms", *(f"Gap at error rate {rate:g}" for rate in rates), "Grows by"),
        rows=tuple(rows),
        notes=GAPS,
    )


def _compared(run: Run) -> list[tuple[str, str]]:
    """Return (weak, strong) arms: the first pattern with each other pattern, and each other variant with the last."""
    variants = [name for name in run.names("architecture") if name in run.config.architecture]
    patterns = [name for name in run.names("architecture") if name not in variants]
    ordered = [*([(patterns[0], other) for other in patterns[1:]]), *((other, variants[-1]) for other in variants[:-1])]
    return [(weak, strong) for weak, strong in ordered if weak != strong]


def _escape(run: Run, trials: pd.DataFrame) -> Table:
    def damaged(arm: pd.DataFrame) -> Rate:
        return Rate(exact_share_by_instance(arm["instance"].tolist(), (~arm["onset"].map(isinf)).tolist()))

    arms = ((name, trials[trials["architecture"] == name]) for name in run.names("architecture"))
    columns = (
        TableColumn[tuple[str, pd.DataFrame]]("Architecture", lambda arm: arm[0]),
        TableColumn[tuple[str, pd.DataFrame]]("Damaged", lambda arm: damaged(arm[1])),
        TableColumn[tuple[str, pd.DataFrame]]("Instances", lambda arm: Number(float(arm[1]["instance"].nunique()), 0)),
    )
    title = "Escape: one wrong first reply, and whether it ends in damage (SIMULATED)"
    notes = ("k of N trials without a fault; exact 95% intervals, clustered by instance; each step is as likely as any other",)
    return table_of("study-momentum-escape", title, columns, arms, notes)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure with a panel for each error rate: the share damaged by each horizon, by arm."""
    trials = onsets(run)
    rates, architectures = sorted(trials["rate"].unique()), run.names("architecture")
    signs = signs_of(architectures)
    figure, axes = panels(len(rates), 3, 3.4, 2.6)
    for rate, ax in zip(rates, axes, strict=True):
        for name in architectures:
            arm = trials[(trials["rate"] == rate) & (trials["architecture"] == name)]
            for place, horizon in enumerate(HORIZONS):
                share = damaged_by(arm, horizon)
                if share.value is not None:
                    at = place + 0.14 * (architectures.index(name) - (len(architectures) - 1) / 2)
                    draw_value(ax, at, (share.value, share.low, share.high), signs[name])
        ax.set_xticks(range(len(HORIZONS)), [str(horizon) for horizon in HORIZONS])
        ax.set_ylim(-0.03, 1.03)
        ax.set_title(f"error rate {rate:g}")
        ax.set_xlabel("committed effects")
        ax.grid(axis="y", color=PALE, lw=0.6)
    legend_of_points(figure, signs)
    title = "Share of trials that are damaged, by how many effects they have committed (SIMULATED)"
    yield finish(
        figure,
        slug("study", "momentum" if len(rates) > 1 else "momentum-escape"),
        title,
        f"{title}. 95% intervals by instance.",
    )
