"""The timeline of one trial under faults, by architecture: what ran when, and what was thrown away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.read.analysis.arms import Arm, Arms, Condition, pairs_of
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Pair
from bench.read.render.drawing import ACCOUNT_LOOKS, BLACK, PALE, Look, Picture, blank, finish, legend_of
from bench.read.render.labels import model_label, slug
from bench.record.config import FAULT_FREE

FrameRow = Mapping[str, Any]

STRUCK = "X"
THINNEST = 0.006
"""The least width of a bar, as a share of the time axis: a call refused at once stays visible."""


def struck_trials(arms: Arms) -> Iterator[list[FrameRow]]:
    """Yield for each scenario the trials to show: one trial of each architecture, from the first plan whose fault struck. If
    possible the trials share one pair, and so the same faults."""
    shown: set[str] = set()
    for condition, named in arms.items():
        if condition.plan == FAULT_FREE or condition.scenario in shown:
            continue
        pair = _common_pair(named.values())
        trials = [trial for arm in named.values() for trial in _first_struck(arm, pair)]
        if trials:
            shown.add(condition.scenario)
            yield trials


def _struck(arm: Arm) -> pd.DataFrame:
    """Return the trials that a fault struck and that called a model. Without a call there is nothing to draw."""
    return arm.usable[(arm.usable["faults_delivered"] > 0) & (arm.usable["calls"] > 0)]


def _common_pair(arms: Iterable[Arm]) -> Pair | None:
    """Return the first instance and repetition in which a fault struck every architecture that was ever struck."""
    struck = [pairs for arm in arms if (pairs := set(pairs_of(_struck(arm))))]
    return min(set.intersection(*struck), default=None) if struck else None


def _first_struck(arm: Arm, pair: Pair | None) -> list[FrameRow]:
    struck = _struck(arm)
    if pair is not None:
        struck = struck.loc[[other == pair for other in pairs_of(struck)]]
    return _rows(struck.sort_values("repetition").head(1))


def _rows(frame: pd.DataFrame) -> list[FrameRow]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def timeline(run: Run, trials: Sequence[FrameRow]) -> Picture:
    """Draw each call as a bar from its start to its end, coloured by its tokens' account. Waits are grey."""
    calls = [_rows(run.calls[run.calls["trial"] == trial["trial"]]) for trial in trials]
    heights = [0.55 + 0.19 * len(trial_calls) for trial_calls in calls]
    figure = blank(7.2, sum(heights) + 0.9)
    axes = figure.subplots(len(trials), 1, squeeze=False, sharex=True, height_ratios=heights).flatten().tolist()
    longest = max(call["started"] + call["seconds"] for trial_calls in calls for call in trial_calls)
    waits = [_rows(run.waits[run.waits["trial"] == trial["trial"]]) for trial in trials]
    struck = [
        set(run.faults.loc[(run.faults["trial"] == trial["trial"]) & run.faults["delivered"], "call"]) for trial in trials
    ]
    for ax, trial, trial_calls, waited, hit in zip(axes, trials, calls, waits, struck, strict=True):
        _draw(ax, trial, trial_calls, waited, longest)
        _mark(ax, trial_calls, hit)
    axes[-1].set_xlabel("seconds since the trial began")
    accounts = {call["account"] for trial_calls in calls for call in trial_calls}
    looks = {name: look for name, look in ACCOUNT_LOOKS.items() if name in accounts}
    mark = Line2D([], [], marker=STRUCK, color=BLACK, lw=0, ms=6, label="a fault struck here")
    legend_of(figure, {**looks, "waiting": Look(PALE)} if any(waits) else looks, *([mark] if any(struck) else []))
    condition = Condition(trials[0]["scenario"], trials[0]["model"], trials[0]["plan"])
    whose = f"{model_label(run, condition.model)}, fault plan {condition.plan}"
    title = f"What one failure on {condition.scenario} led to: the first trial that it struck, by architecture ({whose})"
    caption = f"{title}. Each bar is a call, in the colour of the account of its tokens.{_left_out(run, trials)}"
    return finish(figure, slug("timeline", condition.scenario, condition.model), title, caption)


def _left_out(run: Run, trials: Sequence[FrameRow]) -> str:
    """Name the architectures that have no trial to show."""
    shared = ("scenario", "model", "plan")
    alike = run.trials[(run.trials[list(shared)] == [trials[0][name] for name in shared]).all(axis=1)]
    absent = sorted(set(alike["architecture"]) - {trial["architecture"] for trial in trials})
    return f" No fault struck a trial of {', '.join(absent)} that ended without an error." if absent else ""


def _draw(ax: Axes, trial: FrameRow, calls: Sequence[FrameRow], waits: Sequence[FrameRow], longest: float) -> None:
    for wait in waits:
        ax.axvspan(wait["started"], wait["started"] + wait["seconds"], color=PALE, lw=0, zorder=0)
    for place, call in enumerate(calls):
        _draw_call(ax, place, call, THINNEST * longest)
    ax.set_yticks(range(len(calls)), [_call_label(call["subtask"], call["cause"]) for call in calls], fontsize=7.5)
    ax.invert_yaxis()
    ax.set_xlim(0, longest * 1.02 or 1.0)
    ax.tick_params(labelbottom=True)
    ax.grid(axis="x", color=PALE, lw=0.6)
    named = f"{trial['architecture']}, repetition {trial['repetition']}"
    outcome = trial["outcome"].replace("_", " ")
    ax.set_title(f"{named}: {outcome}, {trial['tokens']:,} tokens", loc="left", fontsize=8.5)


def _mark(ax: Axes, calls: Sequence[FrameRow], struck: set[int]) -> None:
    """Mark the end of each call whose request or reply a fault struck."""
    for place, call in enumerate(calls):
        if call["call"] in struck:
            ax.plot(call["started"] + call["seconds"], place, STRUCK, color=BLACK, ms=6, clip_on=False)


def _draw_call(ax: Axes, place: int, call: FrameRow, thinnest: float) -> None:
    look = ACCOUNT_LOOKS[call["account"]]
    if call["seconds"] <= thinnest:
        ax.barh(place, thinnest, 0.72, call["started"], color=look.colour)
    else:
        edge: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.4}
        ax.barh(place, call["seconds"], 0.72, call["started"], color=look.colour, hatch=look.hatch, **edge)


def _call_label(subtask: str, cause: str, most: int = 30) -> str:
    short = subtask if len(subtask) <= most else subtask[: most - 1] + "…"
    return short if cause == "first" else f"{short}, {cause}"
