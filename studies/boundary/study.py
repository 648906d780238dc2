"""The boundary ablated: what does each part of the contract between proposer, verifier, commit and reject signal contribute?

A cell is a strength, whether people are asked for approval, a commit, a signal and the proposer's error rate, on the same
instances under the same faults. The effect of a part is how much a trial's damage rises from its strongest level to a weaker
one, as a mean over all cells of the other parts, and over the pairs in which the part had an occasion to act. An interaction is
how much more it rises if another part is at its weakest.

A proposer that errs gives up earlier, so that fewer of its calls are struck: damage is told for each delivered fault as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, get_args

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.factors import (
    ArmName,
    VerdictEvidence,
    factor_could_act,
    factors_between,
    reason_against_verdict,
    settings_of,
)
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Ratio, holm, ratio_of_sums
from bench.read.render.cells import AdjustedP, BoundedNumber, Number
from bench.read.render.drawing import BLUE, GREY, PALE, Picture, finish, panels
from bench.read.render.labels import slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.tables.contrasts import BootstrapMean, bootstrap_mean
from bench.record.damage import DAMAGES
from bench.record.form import STRENGTHS, Commit, Signal

from ..rises import Rises, interaction, main_effect, rises

ERRORS = "error rate"
LEVELS: Mapping[str, tuple[object, ...]] = {
    "strength": STRENGTHS,
    "approval": ("never", "risky"),
    "commit": get_args(Commit),
    "signal": tuple(reversed(get_args(Signal))),
}
"""Each part's levels, the weakest first."""
COSTS = {"tokens": 0, "calls": 2, "milliseconds": 0}
"""The costs of a part in a trial, with the digits that a table shows."""
SHOWN_INTERACTIONS = 3
WHOLE = "all"
"""The part of a gap between two boundaries that differ in every part."""


@dataclass(frozen=True)
class PartEffect:
    """One part at one level, compared with its strongest: damage, and the costs of a trial."""

    scenario: str
    part: str
    level: str
    reference: str
    damage: Rises
    costs: Mapping[str, BootstrapMean]


@dataclass(frozen=True)
class Interaction:
    """Two parts at their weakest, compared with the sum of each alone."""

    scenario: str
    parts: tuple[str, str]
    levels: tuple[str, str]
    damage: BootstrapMean


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
    trials = boundary_trials(run)
    levels = {part: tuple(level for level in every if (trials[part] == level).any()) for part, every in LEVELS.items()}
    levels[ERRORS] = tuple(sorted(trials[ERRORS].unique(), reverse=True))
    if any(len(levels[part]) < 2 for part in LEVELS):
        raise ResultsError(
            "needs variants that cross at least two levels each of `strength`, `approval`, `commit` and `signal`"
        )
    crossed = {part: level_names for part, level_names in levels.items() if len(level_names) > 1}
    return [
        _ablation(str(scenario), group, crossed) for scenario, group in trials.groupby("scenario", sort=False, observed=True)
    ]


def boundary_trials(run: Run) -> pd.DataFrame:
    """Return the trials whose variants set the boundary's parts, with a column for each part as it was run."""
    entries = run.config.architecture
    cells = {name for name, entry in entries.items() if None not in (entry.strength, entry.commit, entry.signal)}
    told = run.trials[run.trials["architecture"].isin(cells) & ~run.trials["outcome"].isin(UNUSABLE)]
    arms = [ArmName(*names) for names in told[list(ArmName._fields)].astype(str).itertuples(index=False, name=None)]
    values = {arm: settings_of(run, arm).values for arm in dict.fromkeys(arms)}
    parts = pd.DataFrame({name: [values[arm][name] for arm in arms] for name in (*LEVELS, "error_rate")}, index=told.index)
    return told.assign(
        **{str(part): parts[part] for part in LEVELS},
        **{ERRORS: parts["error_rate"].astype(float)},
        damage=told[[f"damage_{kind}" for kind in DAMAGES]].sum(axis=1).astype(float),
        milliseconds=told["latency_seconds"] * 1000,
    )


def _ablation(scenario: str, trials: pd.DataFrame, levels: Mapping[str, Sequence[Any]]) -> Ablation:
    pairs = ["instance", "repetition", "plan", *levels]

    def effect(part: str, level: object) -> PartEffect:
        strongest = levels[part][-1]
        costs = {name: main_effect(trials, name, part, level, strongest, pairs) for name in COSTS}
        return PartEffect(scenario, part, str(level), str(strongest), _damage(trials, part, level, strongest, pairs), costs)

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


def _damage(trials: pd.DataFrame, part: str, level: object, reference: object, pairs: list[str]) -> Rises:
    return rises(trials, "damage", part, level, reference, pairs, factor_could_act(trials, [part]))


@dataclass(frozen=True)
class Gap:
    """The share of damaged trials with one part, or all, at its weakest, minus the share at its strongest.

    by_rate   error rate of the proposer, falling -> the gap there
    grows     how much larger the gap is at the least error rate than at the greatest
    """

    scenario: str
    part: str
    by_rate: Mapping[float, BootstrapMean]
    grows: BootstrapMean


def gaps(run: Run) -> list[Gap]:
    """Return the gaps by scenario and part. Empty if there is only one error rate."""
    trials = boundary_trials(run)
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


@dataclass(frozen=True)
class Exposure:
    """Trials with one commit at one error rate, each beside the same trial with the strongest commit.

    struck     faults delivered in a trial
    more       damage of a trial beyond its twin's
    for_each   that for each fault that was delivered
    """

    scenario: str
    commit: str
    error_rate: float
    trials: int
    struck: float
    more: BootstrapMean
    for_each: Ratio


def exposures(run: Run) -> list[Exposure]:
    trials = boundary_trials(run)
    return [
        Exposure(
            str(scenario),
            commit,
            float(str(rate)),
            len(group[group["commit"] == commit]),
            float(group.loc[group["commit"] == commit, "faults_delivered"].mean()),
            bootstrap_mean(more),
            ratio_of_sums([more[name] for name in more if struck[name]], [struck[name] for name in more if struck[name]]),
        )
        for (scenario, rate), group in trials.groupby(["scenario", ERRORS], sort=False, observed=True)
        for commit in map(str, LEVELS["commit"][:-1])
        if (group["commit"] == commit).any()
        for more, struck in [_by_fault(group, commit)]
    ]


def _by_fault(trials: pd.DataFrame, commit: str) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return each instance's damage beyond the strongest commit, and its delivered faults, as means of its trials."""
    pairs = ["instance", "repetition", "plan", ERRORS, *LEVELS]
    more = rises(trials, "damage", "commit", commit, LEVELS["commit"][-1], pairs).by_instance
    means = trials[trials["commit"] == commit].groupby("instance", observed=True)["faults_delivered"].mean()
    return more, {str(instance): float(value) for instance, value in means.items()}


# Verdicts

NAMED = (
    ("Its checks matter", "strength", "none", "business_rule"),
    ("Asking a person matters", "approval", "never", "risky"),
    ("The commit matters", "commit", "plain", "compare_and_swap"),
    ("A rejection that is reported as success does harm", "signal", "as_success", "typed"),
    ("A typed reason does less harm than an untyped rejection", "signal", "untyped", "typed"),
)
"""Sentence, the part that it names, and the levels that it compares: more damage at the first than at the second."""
GROWS = "A plain commit does more damage where the proposer errs less, in a trial"
GROWS_BY_FAULT = "A plain commit does more damage where the proposer errs less, for each fault"
LEVEL = 0.05


@dataclass(frozen=True)
class BoundaryVerdict:
    """What a run says of a sentence. `rises`: damaged effects more. `p`: Holm's, over the `family` of all sentences and
    worlds."""

    scenario: str
    sentence: str
    rises: Rises
    refused: str
    p: float | None = None
    family: int = 0

    @property
    def verdict(self) -> str:
        if self.refused:
            return "not comparable"
        contrast = self.rises.contrast
        if self.p is None or self.p >= LEVEL or contrast.low is None or contrast.high is None:
            return self.rises.open_verdict(self.family)
        return "holds" if contrast.low > 0 else "contradicted" if contrast.high < 0 else "inconclusive"


def verdicts(run: Run) -> list[BoundaryVerdict]:
    """Return the verdicts on all sentences by world. What a sentence rests on is checked by `refusal`: its arms differ in the
    part that it names alone, its pairs could differ, and its N is of instances."""
    trials = boundary_trials(run)
    told: list[BoundaryVerdict] = []
    for scenario, group in trials.groupby("scenario", sort=False, observed=True):
        pairs = ["instance", "repetition", "plan", ERRORS, *LEVELS]
        for sentence, part, level, reference in NAMED:
            risen = _damage(group, part, level, reference, pairs)
            evidence = VerdictEvidence(
                _factors(run, group, part, level, reference), risen.pairs, risen.could_differ, len(risen.by_instance)
            )
            told.append(BoundaryVerdict(str(scenario), sentence, risen, reason_against_verdict(evidence, part)))
        told += _grows(str(scenario), group)
    adjusted = holm({place: each.rises.p for place, each in enumerate(told) if not each.refused})
    return [replace(each, p=adjusted.get(place), family=len(adjusted)) for place, each in enumerate(told)]


def _factors(run: Run, trials: pd.DataFrame, part: str, level: object, reference: object) -> tuple[str, ...]:
    """Return in what the arms of any pair that is compared differ."""
    shared = [ERRORS, *(name for name in LEVELS if name != part)]
    arms = trials.drop_duplicates([*shared, part]).set_index([*shared, part])[list(ArmName._fields)].astype(str)
    factors: set[str] = set()
    for place in arms.index:
        other = (*place[:-1], reference)
        if place[-1] == level and other in arms.index:
            factors |= set(factors_between(run, ArmName(*arms.loc[place]), ArmName(*arms.loc[other])))
    return tuple(sorted(factors))


def _grows(scenario: str, trials: pd.DataFrame) -> Iterator[BoundaryVerdict]:
    """Yield the verdicts on the sentences that a plain commit does more damage, beyond the strongest, at the least error rate
    than at the greatest: in a trial, for which the trials must be struck alike at both, and for each fault."""
    rates = sorted(trials[ERRORS].unique())
    if len(rates) < 2:
        return
    at_ends = [trials[trials[ERRORS] == rate] for rate in (rates[0], rates[-1])]
    least, greatest = (_by_fault(each, "plain") for each in at_ends)
    plain = [each[each["commit"] == "plain"] for each in at_ends]
    struck = (float(plain[0]["faults_delivered"].mean()), float(plain[1]["faults_delivered"].mean()))
    pairs = min(map(len, plain))
    in_all = {name: least[0][name] - greatest[0][name] for name in least[0].keys() & greatest[0].keys()}
    were_struck = [name for name in in_all if least[1][name] and greatest[1][name]]
    for_each = {name: least[0][name] / least[1][name] - greatest[0][name] / greatest[1][name] for name in were_struck}
    for sentence, grown, of_arms in ((GROWS, in_all, struck), (GROWS_BY_FAULT, for_each, None)):
        evidence = VerdictEvidence(("error_rate",), pairs, pairs, len(grown), of_arms)
        yield BoundaryVerdict(scenario, sentence, Rises(grown, pairs, pairs), reason_against_verdict(evidence, "error_rate"))


# Tables and figures

NOTES = (
    "damage: effects of a trial that were lost, doubled, orphaned, unauthorised, uncompensated, stale or late; the rise of its "
    "mean from the strongest level of this part to this one, all else being equal, the mean over all cells of the other parts",
    "pairs that could differ: for a check those in which something was rejected or denied, for approval those in which a "
    "person was waited for, for the commit those in which a fault was delivered, for the signal those in which something was "
    "rejected, and all that did differ; the rise of damage is over these, the rises of costs are over all pairs",
    "95% intervals are of resampled instances (expanded percentiles, 2,000 resamples); each holds for itself",
    "seconds of a simulated model are declared and not measured",
    "SIMULATED: the proposer's errors are declared in the config",
)
TOGETHER = (
    "of two parts at their weakest, the rise of damage beyond the sum of what each does alone",
    "the largest of all pairs are shown, so that their intervals are somewhat too short",
)


EXPOSURE = (
    "faults in a trial: delivered; a proposer that errs gives up earlier, so that fewer of its calls are struck",
    "more damage: than in the same trial with compare-and-swap; for each fault: by the faults that were delivered, in the "
    "instances that were struck; 95% intervals by instance",
)
VERDICTS = (
    "holds, contradicted: the interval lies on one side of 0 and p < 0.05 by the sign-flip test over instances, after Holm's "
    "correction over all sentences and worlds; not comparable: no verdict may rest on these arms; (floor): no values "
    "of so many instances give such a p; inconclusive: any other case",
)
GAPS = (
    "gap: the share of damaged trials with this part at its weakest, less the share at its strongest, the mean over all "
    "cells of the others; of all parts, the weakest boundary against the strongest",
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
        TableColumn[PartEffect]("More damage", lambda effect: effect.damage.contrast.cell()),
        TableColumn[PartEffect]("Pairs that could differ", lambda effect: effect.damage.could_differ),
        TableColumn[PartEffect]("Pairs", lambda effect: effect.damage.pairs),
        *map(cost, COSTS),
        TableColumn[PartEffect]("Instances", lambda effect: len(effect.damage.by_instance)),
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
    struck = (
        TableColumn[Exposure]("Scenario", lambda row: row.scenario),
        TableColumn[Exposure]("Commit", lambda row: row.commit),
        TableColumn[Exposure]("Error rate", lambda row: Number(row.error_rate, 1)),
        TableColumn[Exposure]("Trials", lambda row: row.trials),
        TableColumn[Exposure]("Faults in a trial", lambda row: Number(row.struck, 2)),
        TableColumn[Exposure]("More damage in a trial", lambda row: row.more.cell()),
        TableColumn[Exposure]("More for each fault", lambda row: BoundedNumber.of(row.for_each, 2)),
    )
    title = "What a delivered fault damages, by commit (SIMULATED)"
    yield table_of("study-boundary-exposure", title, struck, exposures(run), EXPOSURE)
    of_sentence = (
        TableColumn[BoundaryVerdict]("What is said", lambda row: row.sentence),
        TableColumn[BoundaryVerdict]("Scenario", lambda row: row.scenario),
        TableColumn[BoundaryVerdict]("Verdict", lambda row: row.verdict),
        TableColumn[BoundaryVerdict]("More damage", lambda row: row.rises.contrast.cell()),
        TableColumn[BoundaryVerdict]("p (Holm)", lambda row: AdjustedP(row.p)),
        TableColumn[BoundaryVerdict]("Pairs that could differ", lambda row: row.rises.could_differ),
        TableColumn[BoundaryVerdict]("Pairs", lambda row: row.rises.pairs),
        TableColumn[BoundaryVerdict]("Refused, because", lambda row: row.refused or "–"),
    )
    title = "What becomes of the sentences on the boundary's parts (SIMULATED)"
    yield table_of("study-boundary-verdicts", title, of_sentence, verdicts(run), VERDICTS)


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
        value, low, high = effect.damage.contrast.value, effect.damage.contrast.low, effect.damage.contrast.high
        if value is not None:
            errors = None if low is None or high is None else [[value - low], [high - value]]
            ax.errorbar([value], [place], xerr=errors, fmt="o", ms=4, color=BLUE, capsize=2, lw=1)
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_yticks(
        range(len(ablation.effects)), [f"{effect.part}: {effect.level}".replace("_", " ") for effect in ablation.effects]
    )
    ax.invert_yaxis()
    ax.set_title(f"{ablation.scenario}: {ablation.trials} trials, {len(ablation.effects[0].damage.by_instance)} instances")
    ax.set_xlabel("more damaged effects a trial")
    ax.grid(axis="x", color=PALE, lw=0.6)
