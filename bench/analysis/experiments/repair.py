"""Repair: what it buys to tell a model why its output was rejected, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from bench.analysis.arms import Arm, Condition, arms_of, base_of
from bench.analysis.frames import Run
from bench.analysis.statistics import Mean, Paired, RateDifference, Share, mean_of, paired_rates, share_of
from bench.errors import ResultsError

UNTOLD = "none"
"""The setting under which a rejected output is asked for again in the same words."""


@dataclass(frozen=True)
class Repaired:
    """A variant of an architecture by what its repair prompt tells, beside its twin that is told nothing.

    Of each trial the first repair counts: the first call after the first rejection that asks for the same output again and is
    answered. Later ones stand on what came of it, and trials with many would outweigh the others.

    accepted         first repairs whose output was accepted, of the trials that came to one
    accepted_less    the rate less the twin's, over the repetitions in which both came to a repair; None for the twin
    prompt_tokens    tokens of the first repair's prompt
    retry_tokens     of a trial that did not end in an error
    retry_less       retry tokens less the twin's, paired by repetition; None for the twin
    """

    scenario: str
    model: str
    plan: str
    base: str
    architecture: str
    setting: str
    arm: Arm
    accepted: Share
    accepted_less: RateDifference | None
    prompt_tokens: Mean
    retry_tokens: Mean
    retry_less: Paired | None


def repair(run: Run) -> list[Repaired]:
    """By scenario, model, fault plan and variant.

    Raises ResultsError where no architecture was run under two repair settings, one of them none.
    """
    families = _families(run)
    first = _first_repairs(run)
    found = [
        variant
        for condition, arms in arms_of(run).items()
        for base, settings in families.items()
        for variant in _variants(condition, base, {name: arms[name] for name in settings if name in arms}, settings, first)
    ]
    if not found:
        raise ResultsError("needs an architecture under two repair settings or more, 'none' among them: [architecture.NAME]")
    return found


def _families(run: Run) -> dict[str, dict[str, str]]:
    """Base -> architecture -> its repair setting, for the bases that were run with none and with another."""
    config = run.manifest["config"]
    variants: Mapping[str, Mapping[str, str | None]] = config.get("architecture", {})
    families: dict[str, dict[str, str]] = {}
    for name in run.names("architecture"):
        setting = variants.get(name, {}).get("repair") or config.get("repair", "")
        families.setdefault(base_of(run, name), {})[name] = setting
    return {base: one for base, one in families.items() if UNTOLD in one.values() and len(set(one.values())) > 1}


def _first_repairs(run: Run) -> dict[str, tuple[bool, int]]:
    """Trial -> (was its first repair's output accepted, tokens of that prompt)."""
    found: dict[str, tuple[bool, int]] = {}
    for trial, calls in run.calls[run.calls["failure"] == ""].groupby("trial", sort=False):
        repaired = _first_repair(calls)
        if repaired is not None:
            found[str(trial)] = (repaired["verdict"] == "accepted", int(repaired["tokens_in"]))
    return found


def _first_repair(calls: pd.DataFrame) -> pd.Series | None:
    rejections = calls[calls["verdict"].str.startswith("rejected")]
    if rejections.empty:
        return None
    first = rejections.iloc[0]
    again = calls[(calls["subtask"] == first["subtask"]) & (calls["attempt"] > first["attempt"]) & (calls["cause"] != "judge")]
    return None if again.empty else again.iloc[0]


def _variants(
    condition: Condition, base: str, arms: Mapping[str, Arm], settings: Mapping[str, str], first: Mapping[str, tuple[bool, int]]
) -> Iterator[Repaired]:
    untold = next((arm for name, arm in arms.items() if settings[name] == UNTOLD), None)
    for name, arm in arms.items():
        twin = None if arm is untold else untold
        accepted = _accepted(arm, first)
        yield Repaired(
            *(condition.scenario, condition.model, condition.plan, base, name, settings[name], arm),
            accepted=share_of(sum(accepted.values()), len(accepted)),
            accepted_less=paired_rates(accepted, _accepted(twin, first)) if twin else None,
            prompt_tokens=mean_of(first[trial][1] for trial in arm.usable["trial"] if trial in first),
            retry_tokens=arm.mean("retry_tokens"),
            retry_less=arm.less(twin, "retry_tokens") if twin else None,
        )


def _accepted(arm: Arm, first: Mapping[str, tuple[bool, int]]) -> dict[int, bool]:
    """Repetition -> was its first repair's output accepted, for those that came to one."""
    rows = zip(arm.usable["repetition"].tolist(), arm.usable["trial"].tolist(), strict=True)
    return {repetition: first[trial][0] for repetition, trial in rows if trial in first}
