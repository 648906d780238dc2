"""Find the settings in which two arms differ, and decide whether a verdict can rest on the pairs of these arms.

A factor is a setting of an arm: its architecture, each key of its variant with the default that it takes, its model, its fault
plan. A key that follows from another key that differs as well is not counted as a factor (`ArmSettings.follows`).

A factor that could not act in a pair shows nothing there: a reject signal does nothing if no output was rejected. Claims,
comparisons and studies all ask `reason_against_verdict` whether a verdict can rest on their pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import pandas as pd

from bench.read.analysis.frames import Run
from bench.record.architecture_entry import ArchitectureEntry
from bench.record.form import BARE, STRENGTHS

ARCHITECTURE = "architecture"
BOUNDARY = ("strength", "commit", "signal", "approval")
"""The parts of a pattern's boundary, which its author's remedies set if the config does not."""
OCCASION_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "strength": ("rejections", "calls_forbidden", "steps_failed"),
    "approval": ("waiting_for_people_minutes",),
    "commit": ("faults_delivered",),
    "signal": ("rejections",),
    "repair": ("rejections",),
    "learns": ("rejections",),
    "plan": ("faults_delivered",),
}
"""Factor -> columns of the trials: the factor could act in a trial if one of them is above 0. Any other factor always acts."""

PairKey = TypeVar("PairKey", bound=Hashable)


class ArmName(NamedTuple):
    """The architecture, the model and the fault plan of an arm."""

    architecture: str
    model: str
    plan: str


@dataclass(frozen=True)
class ArmSettings:
    """The settings of an arm. `values` maps each setting to its value, with defaults filled in. `follows` has pairs of keys: if
    both keys differ, the first is not counted as a factor, because its value follows from the second."""

    values: Mapping[str, object]
    follows: frozenset[tuple[str, str]]


def settings_of(run: Run, arm: ArmName) -> ArmSettings:
    """Return the settings of an arm, with defaults filled in.

    A boundary that checks the policy also asks people, unless the variant says whom it asks (`approval`). Whom it asks is a
    setting that follows from no other.
    """
    entry = run.config.architecture.get(arm.architecture) or ArchitectureEntry(base=arm.architecture)
    form = entry.form or BARE
    values: dict[str, object] = {name: getattr(entry, name) for name in ArchitectureEntry.model_fields if name != "base"}
    values |= {
        ARCHITECTURE: entry.base or entry.command,
        "code": run.manifest.architectures.get(arm.architecture),
        "max_attempts": entry.max_attempts or run.config.max_attempts,
        "repair": entry.repair or run.config.repair,
        "strength": next((name for name in reversed(STRENGTHS) if form.holds(name)), "none"),
        "commit": form.commit or ("compare_and_swap" if form.remedies else "plain"),
        "signal": form.tells,
        "approval": form.approval or ("risky" if form.remedies or form.holds("policy") else "never"),
        "plan": arm.plan,
        **_model_settings(run, arm.model),
    }
    follows = {("code", ARCHITECTURE)}  # an architecture is its code
    # If the config does not set a part of the boundary, the pattern's remedies do.
    follows |= {(part, "remedies") for part in BOUNDARY if form.remedies and getattr(form, part) is None}
    if not values.get("error_rate"):  # a proposer that never errs is never asked again
        follows.add(("learns", "error_rate"))
    return ArmSettings(values, frozenset(follows))


def _model_settings(run: Run, model: str) -> dict[str, object]:
    """Return a simulated model's settings, which the config declares. Any other model counts as one setting, whatever its
    parameters."""
    parameters = run.parameters_of(model)
    if not parameters.is_simulated:
        return {"model": model}
    return {"error_rate": 0.0, "learns": None, **parameters.shown}


def factors_between(run: Run, first: ArmName, second: ArmName, other_run: Run | None = None) -> tuple[str, ...]:
    """Return the names of the settings in which two arms differ. The second arm belongs to `other_run` if that is given."""
    ours, theirs = settings_of(run, first), settings_of(other_run or run, second)
    keys = sorted({*ours.values, *theirs.values})
    differ = [key for key in keys if ours.values.get(key) != theirs.values.get(key)]
    follows = ours.follows | theirs.follows
    return tuple(key for key in differ if not any((key, other) in follows for other in differ))


def factor_could_act(trials: pd.DataFrame, factors: Collection[str]) -> pd.Series[bool]:
    """Return for each trial whether one of the factors had an occasion to act in it. All are True if a factor has no
    OCCASION_COLUMNS (factor -> the columns that count its occasions), or if there are no factors: then the runs differ by
    something that is not a setting."""
    if not factors or not set(factors) <= set(OCCASION_COLUMNS):
        return pd.Series(True, index=trials.index)
    columns = [column for factor in factors for column in OCCASION_COLUMNS[factor]]
    return trials.reindex(columns=columns).astype("Float64").fillna(0.0).gt(0.0).any(axis=1).astype(bool)


def pairs_that_could_differ(
    first: Mapping[PairKey, object], second: Mapping[PairKey, object], affected: Collection[PairKey]
) -> list[PairKey]:
    """Return the pairs that could have differed: `affected` pairs, in which a factor could act in either trial, and pairs that
    do differ."""
    return [pair for pair in first if pair in second and (pair in affected or first[pair] != second[pair])]


@dataclass(frozen=True)
class VerdictEvidence:
    """The evidence on which a verdict about two arms rests.

    factors       the settings in which the arms differ (`factors_between`)
    pairs         the number of pairs of trials
    could_differ  the number of these pairs that could differ (`pairs_that_could_differ`)
    units         the number of independent draws, such as instances, edits or deaths; the trials of a unit are alike
    fault_rates   the mean number of faults delivered in a trial of each arm, if the verdict is on the harm of all faults
                  together
    without_idle  whether the finding is the same without the pairs in which neither arm did anything; None if there are none
    """

    factors: tuple[str, ...]
    pairs: int
    could_differ: int
    units: int
    fault_rates: tuple[float, float] | None = None
    without_idle: bool | None = None


MIN_UNITS = 2
MAX_FAULT_RATE_GAP = 0.05
"""Harm is compared in all only if the arms' mean numbers of faults in a trial differ by less than this share."""


def other_differences(factors: Collection[str], named: str) -> str:
    """Return the differences of two arms beyond the factor that a sentence names; "" if there are none."""
    if set(factors) == {named}:
        return ""
    if not set(factors) - {named}:
        return f"the arms do not differ in {named}"
    return f"the arms differ in {' and '.join(factors)}, and the sentence names {named} alone"


def reason_against_verdict(evidence: VerdictEvidence, named: str | None) -> str:
    """Return why no verdict about the factor `named` in a sentence can rest on this evidence; "" if it can. If `named` is
    None, the sentence names all factors."""
    return next(_reasons(evidence, named), "")


def _reasons(evidence: VerdictEvidence, named: str | None) -> Iterator[str]:
    """Yield each reason why no verdict about the named factor can rest on this evidence."""
    if named is not None and (reason := other_differences(evidence.factors, named)):
        yield reason
    if not evidence.could_differ:
        yield f"none of {evidence.pairs} pairs could have differed"
    elif evidence.units < min(MIN_UNITS, evidence.could_differ):
        yield f"the {evidence.could_differ} pairs that could differ are copies of {evidence.units}"
    if evidence.fault_rates is not None:
        first, second = evidence.fault_rates
        if abs(first - second) > MAX_FAULT_RATE_GAP * max(first, second):
            rates = f"{first:.2f} and {second:.2f} faults a trial"
            yield f"the arms were not struck alike, with {rates}, so harm is told for each fault"
    if evidence.without_idle is False:
        yield "it does not stand without the pairs in which neither side did anything"
