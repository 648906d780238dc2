"""The boundary ablated: what does each part of the contract between proposer, verifier, commit and reject signal contribute?

A cell is a strength, a commit, a signal and the proposer's error rate, on the same instances under the same faults. The effect
of a part is how much a trial's damage rises from its strongest level to a weaker one, as a mean over all cells of the other
parts. An interaction is how much more it rises if another part is at its weakest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.render.drawing import BLUE, GREY, PALE, Picture, finish, panels
from bench.read.render.labels import slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import MeanContrast, interaction, main_effect
from bench.record.architecture_entry import ArchitectureEntry
from bench.record.form import STRENGTHS, Commit, Signal
from bench.record.worlds.damage import DAMAGES

ERRORS = "error rate"
LEVELS: Mapping[str, tuple[object, ...]] = {
    "strength": STRENGTHS,
    "commit": get_args(Commit),
    "signal": tuple(reversed(get_args(Signal))),
}
"""Each part's levels, the weakest first."""
COSTS = {"tokens": 0, "calls": 2, "milliseconds": 0}
"""The costs of a part in a trial, with the digits that a table shows."""
SHOWN_INTERACTIONS = 3
WHOLE = "all three"
"""The part of a gap between two boundaries that differ in every part."""


@dataclass(frozen=True)
class PartEffect:
    """One part at one level, compared with its strongest: damage, and the costs of a trial."""

    scenario: str
    part: str
    level: str
    reference: str
    damage: MeanContrast
    costs: Mapping[str, MeanContrast]


@dataclass(frozen=True)
class Interaction:
    """Two parts at their weakest, compared with the sum of each alone."""

    scenario: str
    parts: tuple[str, str]
    levels: tuple[str, str]
    damage: MeanContrast


@dataclass(frozen=True)
class Ablation:
    """The results of one scenario."""

    scenario: str
    cells: int
    trials: int
    effects: tuple[PartEffect, ...]
    interactions: tuple[Interaction, ...]


def ablations(run: Run) -> list[Ablation]:
    """Return the results by scenario. Raise ResultsError if the run does not cross at least two levels of each part of the
    boundary."""
    trials = _trials(run)
    levels = {part: tuple(level for level in every if (trials[part] == level).any()) for part, every in LEVELS.items()}
    levels[ERRORS] = tuple(sorted(trials[ERRORS].unique(), reverse=True))
    if any(len(levels[part]) < 2 for part in LEVELS):
        raise ResultsError("needs variants that cross at least two levels each of `strength`, `commit` and `signal`")
    crossed = {part: level_names for part, level_names in levels.items() if len(level_names) > 1}
    return [
        _ablation(str(scenario), group, crossed) for scenario, group in trials.groupby("scenario", sort=False, observed=True)
    ]


def _trials(run: Run) -> pd.DataFrame:
    """Return the trials whose variants set all three parts, with a column for each."""
    forms = {name: entry for name, entry in run.config.architecture.items() if _is_cell(entry)}
    told = run.trials[run.trials["architecture"].isin(forms) & ~run.trials["outcome"].isin(UNUSABLE)]
    names = told["architecture"].astype(str)
    damage = told[[f"damage_{kind}" for kind in DAMAGES]].sum(axis=1)
    rates = {model: float(run.parameters_of(model).shown.get("error_rate", 0.0)) for model in run.names("model")}
    return told.assign(
        **{part: names.map(lambda name, part=part: getattr(forms[name], part)) for part in LEVELS},
        **{ERRORS: told["model"].astype(str).map(rates)},
        damage=damage.astype(float),
        milliseconds=told["latency_seconds"] * 1000,
    )


def _is_cell(entry: ArchitectureEntry) -> bool:
    return None not in (entry.strength, entry.commit, entry.signal)


def _ablation(scenario: str, trials: pd.DataFrame, levels: Mapping[str, Sequence[Any]]) -> Ablation:
    pairs = ["instance", "repetition", "plan", *levels]

    def effect(part: str, level: object) -> PartEffect:
        strongest = levels[part][-1]
        rises = {name: main_effect(trials, name, part, level, strongest, pairs) for name in ("damage", *COSTS)}
        return PartEffect(scenario, part, str(level), str(strongest), rises.pop("damage"), rises)

    weakest, strongest = ({part: level_names[end] for part, level_names in levels.items()} for end in (0, -1))
    pairs_of_parts = [
        Interaction(
            scenario,
            (part, other),
            (str(weakest[part]), str(weakest[other])),
            interaction(trials, "damage", (part, other), weakest, strongest, pairs),
        )
        for part, other in combinations(levels, 2)
    ]
    return Ablation(
        scenario,
        trials.groupby(list(levels), observed=True).ngroups,
        len(trials),
        tuple(effect(part, level) for part, level_names in levels.items() for level in level_names[:-1]),
        tuple(sorted(pairs_of_parts, key=lambda two: -abs(two.damage.value or 0.0))),
    )


@dataclass(frozen=True)
class Gap:
    """The share of damaged trials with one part, or all, at its weakest, minus the share at its strongest.

    by_rate   error rate of the proposer, falling -> the gap there
    grows     how much larger the gap is at the least error rate than at the greatest
    """

    scenario: str
    part: str
    by_rate: Mapping[float, MeanContrast]
    grows: MeanContrast


def gaps(run: Run) -> list[Gap]:
    """Return the gaps by scenario and part. Empty if there is only one error rate."""
    trials = _trials(run)
    trials = trials.assign(is_damaged=(trials["damage"] > 0).astype(float), boundary=_ends(trials))
    rates = sorted(trials[ERRORS].unique(), reverse=True)
    return [
        _gap(str(scenario), part, group, rates)
        for scenario, group in trials.groupby("scenario", sort=False, observed=True)
        for part in (WHOLE, *LEVELS)
        if len(rates) > 1
    ]


def _ends(trials: pd.DataFrame) -> pd.Series[str]:
    """Return `weakest` for trials with each part at its weakest, `strongest` for each at its strongest."""
    names = pd.Series("between", index=trials.index)
    for name, end in (("weakest", 0), ("strongest", -1)):
        names[(trials[list(LEVELS)] == [levels[end] for levels in LEVELS.values()]).all(axis=1)] = name
    return names


def _gap(scenario: str, part: str, trials: pd.DataFrame, rates: Sequence[float]) -> Gap:
    whole = part == WHOLE
    factor = "boundary" if whole else part
    weakest, strongest = ("weakest", "strongest") if whole else (LEVELS[part][0], LEVELS[part][-1])
    pairs = ["instance", "repetition", "plan", ERRORS, factor, *(() if whole else LEVELS)]
    pairs = list(dict.fromkeys(pairs))
    by_rate = {
        rate: main_effect(trials[trials[ERRORS] == rate], "is_damaged", factor, weakest, strongest, pairs) for rate in rates
    }
    least, greatest = {factor: weakest, ERRORS: rates[-1]}, {factor: strongest, ERRORS: rates[0]}
    return Gap(scenario, part, by_rate, interaction(trials, "is_damaged", (factor, ERRORS), least, greatest, pairs))


# Tables and figures

NOTES = (
    "damage: effects of a trial that were lost, doubled, orphaned, unauthorised, uncompensated, stale or late; the rise of its "
    "mean from the strongest level of this part to this one, all else being equal, the mean over all cells of the other parts",
    "95% intervals are of resampled instances (expanded percentiles, 2,000 resamples); each holds for itself",
    "seconds of a simulated model are declared and not measured",
    "SIMULATED: the proposer's errors are declared in the config",
)
TOGETHER = (
    "of two parts at their weakest, the rise of damage beyond the sum of what each does alone",
    "the largest of all pairs are shown, so that their intervals are somewhat too short",
)


GAPS = (
    "gap: the share of damaged trials with this part at its weakest, less the share at its strongest, the mean over all "
    "cells of the others; of all three, the weakest boundary against the strongest",
    "grows by: the gap at the least error rate, less that at the greatest; below zero it shrinks as errors become rare",
    "95% intervals are of resampled instances",
)


def tables(run: Run) -> Iterator[Table]:
    all_ablations = ablations(run)

    def cost(name: str) -> TableColumn[PartEffect]:
        return TableColumn(f"More {name}", lambda effect: effect.costs[name].cell(COSTS[name]))

    columns = (
        TableColumn[PartEffect]("Scenario", lambda effect: effect.scenario),
        TableColumn[PartEffect]("Part", lambda effect: effect.part),
        TableColumn[PartEffect]("At", lambda effect: effect.level),
        TableColumn[PartEffect]("In the place of", lambda effect: effect.reference),
        TableColumn[PartEffect]("More damage", lambda effect: effect.damage.cell()),
        *map(cost, COSTS),
        TableColumn[PartEffect]("Instances", lambda effect: effect.damage.instances),
    )
    sizes = [f"{each.scenario}: {each.trials} trials in {each.cells} cells" for each in all_ablations]
    title = "The boundary, taken apart: what each part carries, and what it costs (SIMULATED)"
    effects = (effect for ablation in all_ablations for effect in ablation.effects)
    yield table_of("study-boundary", title, columns, effects, (*NOTES, *_learned(run), *sizes))
    of_two = (
        TableColumn[Interaction]("Scenario", lambda two: two.scenario),
        TableColumn[Interaction]("Parts", lambda two: " and ".join(two.parts)),
        TableColumn[Interaction]("At", lambda two: " and ".join(two.levels)),
        TableColumn[Interaction]("More damage than the sum", lambda two: two.damage.cell()),
        TableColumn[Interaction]("Instances", lambda two: two.damage.instances),
    )
    together = (two for ablation in all_ablations for two in ablation.interactions[:SHOWN_INTERACTIONS])
    title = "The boundary, taken apart: the largest interactions (SIMULATED)"
    yield table_of("study-boundary-interactions", title, of_two, together, TOGETHER)
    if table := _gaps(run):
        yield table


def _learned(run: Run) -> list[str]:
    """Return the sources of the rates at which a rejected proposer is right the next time, each once."""
    learns = [run.parameters_of(model).shown.get("learns") for model in run.names("model")]
    sources = dict.fromkeys(str(each["source"]) for each in learns if isinstance(each, dict))
    return [f"what the proposer learns from a rejection: {source}" for source in sources]


def _gaps(run: Run) -> Table | None:
    measured = gaps(run)
    if not measured:
        return None

    def at(rate: float) -> TableColumn[Gap]:
        return TableColumn(f"Gap at error rate {rate:g}", lambda gap: gap.by_rate[rate].cell())

    columns = (
        TableColumn[Gap]("Scenario", lambda gap: gap.scenario),
        TableColumn[Gap]("Part", lambda gap: gap.part),
        *map(at, measured[0].by_rate),
        TableColumn[Gap]("Grows by", lambda gap: gap.grows.cell()),
    )
    title = "Does the boundary matter more where the proposer errs less? (SIMULATED)"
    return table_of("study-boundary-gaps", title, columns, measured, GAPS)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure with a panel for each scenario: the rise of damage by part and level."""
    all_ablations = ablations(run)
    most = max(len(ablation.effects) for ablation in all_ablations)
    figure, axes = panels(len(all_ablations), 2, 5.2, 1.2 + 0.32 * most)
    for ablation, ax in zip(all_ablations, axes, strict=True):
        _panel(ax, ablation)
    title = "What each part of the boundary carries, on a simulated proposer (SIMULATED)"
    caption = "Rise of damage from a part's strongest level, mean over all cells of the others; 95% intervals by instance."
    yield finish(figure, slug("study", "boundary"), title, f"{title}. {caption}")


def _panel(ax: Axes, ablation: Ablation) -> None:
    for place, effect in enumerate(ablation.effects):
        value, low, high = effect.damage.value, effect.damage.low, effect.damage.high
        if value is not None:
            errors = None if low is None or high is None else [[value - low], [high - value]]
            ax.errorbar([value], [place], xerr=errors, fmt="o", ms=4, color=BLUE, capsize=2, lw=1)
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_yticks(
        range(len(ablation.effects)), [f"{effect.part}: {effect.level}".replace("_", " ") for effect in ablation.effects]
    )
    ax.invert_yaxis()
    ax.set_title(f"{ablation.scenario}: {ablation.trials} trials, {ablation.effects[0].damage.instances} instances")
    ax.set_xlabel("more damaged effects a trial")
    ax.grid(axis="x", color=PALE, lw=0.6)
