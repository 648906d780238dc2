"""Repair: what telling a model the reason of a rejection buys, and its price."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import Arm, Condition, arms_of, pairs_of
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import (
    Mean,
    Pair,
    PairedMean,
    RateDifference,
    Share,
    amount_of,
    by_unit,
    paired_rates,
    share_by_instance,
)
from bench.read.render.cells import Estimate, Rate, RateGap
from bench.read.render.drawing import BLUE, PALE, Picture, finish, panel_title, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.table import Table, TableColumn, table_of

from ..by_model import by_model
from ..marks import whisker

UNTOLD = "none"
"""The setting under which a rejected output is asked for again with the same prompt."""


@dataclass(frozen=True)
class RepairVariant:
    """A variant of an architecture with one repair setting, compared with the variant whose repair prompt says nothing.

    Only the first repair of a trial counts: the first answered call after the first rejection that asks for the same output
    again. Later ones depend on it, and trials with many would outweigh the others.

    accepted         share of first repairs whose output was accepted
    accepted_less    minus the untold variant's rate, over the repetitions in which both had a repair; None for that variant
    prompt_tokens    tokens of the first repair's prompt
    retry_tokens     of a trial that did not end in an error
    retry_less       retry tokens minus the untold variant's, paired by repetition; None for that variant
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
    retry_less: PairedMean | None


def repair(run: Run) -> list[RepairVariant]:
    """Return the variants by scenario, model, fault plan and architecture.

    Raises ResultsError if no architecture was run under two repair settings, one of them `none`.
    """
    families = _families(run)
    first = _first_repairs(run)
    variants = [
        variant
        for condition, arms in arms_of(run).items()
        for base, settings in families.items()
        for variant in _variants(condition, base, {name: arms[name] for name in settings if name in arms}, settings, first)
    ]
    if not variants:
        raise ResultsError("needs an architecture under two repair settings or more, 'none' among them: [architecture.NAME]")
    return variants


def _families(run: Run) -> dict[str, dict[str, str]]:
    """Return base -> architecture -> its repair setting, for bases that were run with `none` and another setting."""
    families: dict[str, dict[str, str]] = {}
    for name in run.names("architecture"):
        variant = run.config.architecture.get(name)
        setting = (variant.repair if variant else None) or run.config.repair
        families.setdefault(run.config.base(name), {})[name] = setting
    return {
        base: settings for base, settings in families.items() if UNTOLD in settings.values() and len(set(settings.values())) > 1
    }


def _first_repairs(run: Run) -> dict[str, tuple[bool, int]]:
    """Return trial -> (whether its first repair's output was accepted, tokens of that prompt)."""
    repairs: dict[str, tuple[bool, int]] = {}
    for trial, calls in run.calls[run.calls["failure"] == ""].groupby("trial", sort=False):
        repaired = _first_repair(calls)
        if repaired is not None:
            repairs[str(trial)] = (repaired["verdict"] == "accepted", int(repaired["tokens_in"]))
    return repairs


def _first_repair(calls: pd.DataFrame) -> pd.Series | None:
    rejections = calls[calls["verdict"].str.startswith("rejected")]
    if rejections.empty:
        return None
    first = rejections.iloc[0]
    again = calls[(calls["subtask"] == first["subtask"]) & (calls["attempt"] > first["attempt"]) & (calls["cause"] != "judge")]
    return None if again.empty else again.iloc[0]


def _variants(
    condition: Condition, base: str, arms: Mapping[str, Arm], settings: Mapping[str, str], first: Mapping[str, tuple[bool, int]]
) -> Iterator[RepairVariant]:
    untold = next((arm for name, arm in arms.items() if settings[name] == UNTOLD), None)
    for name, arm in arms.items():
        other = None if arm is untold else untold
        repairs = _of_first_repairs(arm, first)
        accepted = _accepted(repairs)
        yield RepairVariant(
            *(condition.scenario, condition.model, condition.plan, base, name, settings[name], arm),
            accepted=share_by_instance([instance for instance, _ in accepted], list(accepted.values())),
            accepted_less=paired_rates(accepted, _accepted(_of_first_repairs(other, first))) if other else None,
            prompt_tokens=amount_of(by_unit({pair: float(tokens) for pair, (_, tokens) in repairs.items()}).values()),
            retry_tokens=arm.mean("retry_tokens"),
            retry_less=arm.minus(other, "retry_tokens") if other else None,
        )


def _of_first_repairs(arm: Arm, first: Mapping[str, tuple[bool, int]]) -> dict[Pair, tuple[bool, int]]:
    """Return pair -> (whether its first repair's output was accepted, tokens of that prompt), for trials that have a repair."""
    rows = zip(pairs_of(arm.usable), arm.usable["trial"].tolist(), strict=True)
    return {pair: first[trial] for pair, trial in rows if trial in first}


def _accepted(repairs: Mapping[Pair, tuple[bool, int]]) -> dict[Pair, bool]:
    return {pair: accepted for pair, (accepted, _) in repairs.items()}


# Tables and figures

NOTES = (
    "first repair: the first call after a trial's first rejection that asks for the same output again; k/N of the trials with "
    "a first repair, with Wilson's 95% interval",
    "against none: paired by repetition with the variant whose repair prompt says nothing; rates over the repetitions in which "
    "both came to a repair, tokens with Student's 95% interval",
    "a simulated model reads no reason, so with it the setting shows only its price",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[RepairVariant]("Scenario", lambda variant: variant.scenario),
        TableColumn[RepairVariant]("Model", lambda variant: model_label(run, variant.model)),
        TableColumn[RepairVariant]("Fault plan", lambda variant: variant.plan),
        TableColumn[RepairVariant]("Variant", lambda variant: f"{variant.architecture} ({variant.base})"),
        TableColumn[RepairVariant]("Repair prompt", lambda variant: variant.setting),
        TableColumn[RepairVariant]("First repair accepted", lambda variant: Rate(variant.accepted)),
        TableColumn[RepairVariant](
            "Against none", lambda variant: RateGap(variant.accepted_less) if variant.accepted_less else "–"
        ),
        TableColumn[RepairVariant]("Its prompt's tokens", lambda variant: Estimate(variant.prompt_tokens, with_n=True)),
        TableColumn[RepairVariant]("Retry tokens a trial", lambda variant: Estimate(variant.retry_tokens, with_n=True)),
        TableColumn[RepairVariant](
            "Retry tokens against none",
            lambda variant: Estimate(variant.retry_less.difference, with_n=True) if variant.retry_less else "–",
        ),
        TableColumn[RepairVariant]("Solved", lambda variant: Rate(variant.arm.solved())),
    )
    yield table_of("study-repair", "Repair: what telling the reason of a rejection buys", columns, repair(run), NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: shares of first repairs accepted above, retry tokens below, with a column of panels for
    each scenario, fault plan and architecture that has repairs."""
    for model, variants in by_model(run, (variant for variant in repair(run) if variant.accepted.n)):
        yield _figure(run, model, variants)


def _figure(run: Run, model: str, variants: Sequence[RepairVariant]) -> Picture:
    places = list(dict.fromkeys((variant.scenario, variant.plan, variant.base) for variant in variants))
    figure, axes = panels(2 * len(places), len(places), 3.0, 2.4)
    draws: tuple[Callable[[Axes, Sequence[RepairVariant]], None], ...] = (_shares, _tokens)
    for number, ax in enumerate(axes):
        scenario, plan, base = places[number % len(places)]
        panel_variants = [
            variant for variant in variants if (variant.scenario, variant.plan, variant.base) == (scenario, plan, base)
        ]
        draws[number // len(places)](ax, panel_variants)
        panel_title(ax, scenario, base, f"fault plan {plan}")
        ax.set_xticks(
            range(len(panel_variants)), [f"{variant.setting}\nN = {variant.accepted.n}" for variant in panel_variants]
        )
        ax.set_xlim(-0.5, len(panel_variants) - 0.5)
        ax.set_ylim(bottom=0)
        ax.grid(axis="y", color=PALE, lw=0.6)
    title = f"Repair: what telling the reason of a rejection buys, {model_label(run, model)}"
    caption = (
        "Above is the share of first repairs that is accepted, and below are the retry tokens of all trials, by what the "
        "repair prompt tells. Whiskers are 95% intervals. N counts the trials that came to a repair."
    )
    return finish(figure, slug("study", "repair", model), title, f"{title}. {caption}")


def _shares(ax: Axes, variants: Sequence[RepairVariant]) -> None:
    ax.set_ylim(top=1.05)
    ax.set_ylabel("first repairs accepted")
    for x, variant in enumerate(variants):
        share = variant.accepted
        if share.rate is not None and share.low is not None and share.high is not None:
            ends = [[share.rate - share.low], [share.high - share.rate]]
            ax.errorbar([x], [share.rate], ends, fmt="o", ms=4.5, color=BLUE, capsize=3, lw=1)


def _tokens(ax: Axes, variants: Sequence[RepairVariant]) -> None:
    ax.set_ylabel("retry tokens a trial")
    for x, variant in enumerate(variants):
        whisker(ax, x, variant.retry_tokens, ("s", BLUE))
