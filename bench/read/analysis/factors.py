"""Find the settings in which two arms differ, and decide whether a verdict can rest on the pairs of these arms.

Every setting of an arm is a factor: its architecture, each key of its variant with the default that it takes, its model, its
fault plan. A key is no factor of its own only if it follows from another key that differs as well (`ArmSettings.follows`).

A factor that had no occasion to act shows nothing: a reject signal does nothing where nothing was rejected. Claims, comparisons
and studies all ask `refusal` whether a verdict may rest on their pairs.
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
OCCASIONS: Mapping[str, tuple[str, ...]] = {
    "strength": ("rejections", "calls_forbidden", "steps_failed"),
    "approval": ("waiting_for_people_minutes",),
    "commit": ("faults_delivered",),
    "signal": ("rejections",),
    "repair": ("rejections",),
    "learns": ("rejections",),
    "plan": ("faults_delivered",),
}
"""Factor -> the columns one of which is above 0 in a trial in which it had an occasion to act. Any other factor always acts."""

Place = TypeVar("Place", bound=Hashable)


class ArmName(NamedTuple):
    """The architecture, the model and the fault plan of an arm."""

    architecture: str
    model: str
    plan: str


@dataclass(frozen=True)
class ArmSettings:
    """The settings of an arm. `values` maps each setting to its value, with defaults filled in. `follows` holds pairs of keys:
    the first key is no factor beside the second, because it follows from the second."""

    values: Mapping[str, object]
    follows: frozenset[tuple[str, str]]


def settings_of(run: Run, arm: ArmName) -> ArmSettings:
    """Return the settings of an arm, with defaults filled in.

    A boundary that checks the policy asks people as well, unless the variant says whom it asks. That is a setting of its own,
    and follows from no other.
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
        **_of_model(run, arm.model),
    }
    follows = {("code", ARCHITECTURE)}  # an architecture is its code
    # The author's remedies set a part that the config does not set.
    follows |= {(part, "remedies") for part in BOUNDARY if form.remedies and getattr(form, part) is None}
    if not values.get("error_rate"):  # a proposer that never errs is never asked again
        follows.add(("learns", "error_rate"))
    return ArmSettings(values, frozenset(follows))


def _of_model(run: Run, model: str) -> dict[str, object]:
    """Return a simulated model's settings, which the config declares. Any other model counts as one setting, whatever it
    contains."""
    parameters = run.parameters_of(model)
    if not parameters.is_simulated:
        return {"model": model}
    return {"error_rate": 0.0, "learns": None, **parameters.shown}


def factors_between(run: Run, first: ArmName, second: ArmName, other_run: Run | None = None) -> tuple[str, ...]:
    """Return the names of the settings in which two arms differ. The second arm belongs to `other_run` if that is given."""
    arms = (settings_of(run, first), settings_of(other_run or run, second))
    keys = sorted({*arms[0].values, *arms[1].values})
    differ = [key for key in keys if arms[0].values.get(key) != arms[1].values.get(key)]
    follows = {pair for arm in arms for pair in arm.follows}
    return tuple(key for key in differ if not any((key, other) in follows for other in differ))


def factor_could_act(trials: pd.DataFrame, factors: Collection[str]) -> pd.Series[bool]:
    """Return for each trial whether one of the factors could act in it. Without a factor the answer is always true: two runs
    with the same settings are compared by whatever else differs."""
    if not factors or not set(factors) <= set(OCCASIONS):
        return pd.Series(True, index=trials.index)
    columns = [column for factor in factors for column in OCCASIONS[factor]]
    return trials.reindex(columns=columns).astype("Float64").fillna(0.0).gt(0.0).any(axis=1).astype(bool)


def pairs_that_could_differ(
    first: Mapping[Place, object], second: Mapping[Place, object], acted: Collection[Place]
) -> list[Place]:
    """Return the pairs that could have differed: pairs in which a factor could act in either trial (`acted`), and pairs that do
    differ."""
    return [place for place in first if place in second and (place in acted or first[place] != second[place])]


@dataclass(frozen=True)
class VerdictEvidence:
    """The evidence on which a verdict about two arms rests.

    factors       in what the arms differ (`factors_between`)
    pairs         pairs of trials
    could_differ  of these, the pairs in which the factor had an occasion to act
    units         what was drawn independently: instances, edits, deaths; a unit's trials are alike
    struck        faults delivered in a trial of each arm, if the verdict is on harm in all and not for each fault
    without_idle  whether the finding stands without the pairs in which neither side did anything; None if none is idle
    """

    factors: tuple[str, ...]
    pairs: int
    could_differ: int
    units: int
    struck: tuple[float, float] | None = None
    without_idle: bool | None = None


LEAST_UNITS = 2
STRUCK_ALIKE = 0.05
"""Arms whose faults for each trial differ by less than this share were struck alike."""


def other_differences(factors: Collection[str], named: str) -> str:
    """Return the differences of two arms beyond the factor that a sentence names; "" if there are none."""
    if set(factors) == {named}:
        return ""
    if not set(factors) - {named}:
        return f"the arms do not differ in {named}"
    return f"the arms differ in {' and '.join(factors)}, and the sentence names {named} alone"


def reason_against_verdict(evidence: VerdictEvidence, named: str | None) -> str:
    """Return why no verdict about the factor that a sentence names can rest on this evidence; "" if it can. None means that the
    sentence names all factors."""
    return next(_reasons(evidence, named), "")


def _reasons(evidence: VerdictEvidence, named: str | None) -> Iterator[str]:
    """Yield each reason why no verdict about the named factor can rest on this evidence."""
    if named is not None and (reason := other_differences(evidence.factors, named)):
        yield reason
    if not evidence.could_differ:
        yield f"none of {evidence.pairs} pairs could have differed"
    elif evidence.units < min(LEAST_UNITS, evidence.could_differ):
        yield f"the {evidence.could_differ} pairs that could differ are copies of {evidence.units}"
    if evidence.struck is not None:
        first, second = evidence.struck
        if abs(first - second) > STRUCK_ALIKE * max(first, second):
            rates = f"{first:.2f} and {second:.2f} faults a trial"
            yield f"the arms were not struck alike, with {rates}, so harm is told for each fault"
    if evidence.without_idle is False:
        yield "it does not stand without the pairs in which neither side did anything"
