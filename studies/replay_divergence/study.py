"""Replay divergence: how often is a different output committed if another model consumes the same events, or if a model is
asked in other words?

*Local*: each event is consumed from its recorded state. D is the share of pairs of replies whose committed outputs differ, free
text left out. *Running*: each model goes on from its own state. D is the share of pairs of trials whose effects differ at the
end. Both are taken beyond the models' own spread: D(A, B) − ½ (D(A, A′) + D(B, B′)), A′ being A with another seed. Estimates
below zero are kept. Intervals cluster by instance. Two prompts are a scenario and its equivalent, asked of one model; their
states are paired by order, because their texts differ.

A boundary without checks commits what it is given. With the pack's business rules a rejected reply commits nothing, so that two
sides that both commit nothing agree in doing nothing. A verdict on the boundary must stand without such pairs as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import Literal

import pandas as pd

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.factors import VerdictEvidence, reason_against_verdict
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import holm
from bench.read.render.cells import AdjustedP, Number
from bench.read.render.drawing import BLUE, GREY, PALE, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.equivalents import task_of
from bench.rerun.divergence import (
    ComparedEvent,
    Divergence,
    beyond_spread,
    committed_output,
    divergence,
    effects_by_trial,
    mean_by_instance,
    name_states,
)
from bench.run.models.bank import BankedReply
from bench.worlds.run.simulated.bank import replies_in

from ..rises import Rises

STRENGTHS = ("none", "business_rule")
"""The strengths of the boundary in the local form."""
LESS = "none, less business_rule"


@dataclass(frozen=True)
class ComparedSides:
    """The two `names` that a run compares: models, or prompts of one model. `column` is the trials' column that holds them."""

    column: str
    names: Sequence[str]

    def of(self, model: str, reply: BankedReply) -> str:
        return model if self.column == "model" else reply.scenario

    @property
    def noun(self) -> str:
        return "model" if self.column == "model" else "prompt"


def sides_of(run: Run) -> ComparedSides:
    """Return the sides. Raise ResultsError unless the run has exactly two models, or one model and two prompts of a task."""
    models, scenarios = run.names("model"), run.names("scenario")
    if run.folder is not None and len(models) == 2 and len(set(map(task_of, scenarios))) == len(scenarios):
        return ComparedSides("model", models)
    if run.folder is not None and len(models) == 1 and len(scenarios) == 2 and len(set(map(task_of, scenarios))) == 1:
        return ComparedSides("scenario", scenarios)
    wanted = "just two models, or of one model and a scenario with its equivalent"
    raise ResultsError(f"needs the trials of {wanted}, each with two repetitions or more, in one run")


def divergences(run: Run) -> list[Divergence]:
    """Return local divergences if the run asked judgments, else running ones. Raise ResultsError as `sides_of` does."""
    sides = sides_of(run)
    assert run.folder is not None  # sides_of has checked it
    replies = list(replies_in(run.folder))
    return _local(sides, replies) if replies else _running(run, run.folder, sides)


def _local(sides: ComparedSides, replies: Sequence[tuple[str, BankedReply]]) -> list[Divergence]:
    whole = _events_by_state(sides, replies)
    judgments = ["", *dict.fromkeys(judgment for _, judgment, _ in whole)]
    rows: list[Divergence] = []
    for judgment in judgments:
        beyond = []
        for strength in STRENGTHS:
            events_of = [
                ComparedEvent(place[0], *([committed_output(reply, strength) for reply in event[side]] for side in sides.names))
                for place, event in whole.items()
                if judgment in ("", place[1])
            ]
            rows.append(divergence("local", strength, judgment, events_of))
            beyond.append(beyond_spread(events_of))
        gap = [none - checked for none, checked in zip(*beyond, strict=True)]
        instances = [event.instance for event in events_of]
        rows.append(Divergence("local", LESS, judgment, None, None, mean_by_instance(instances, gap), len(gap)))
    return rows


def _events_by_state(
    sides: ComparedSides, replies: Sequence[tuple[str, BankedReply]]
) -> dict[tuple[str, str, str], dict[str, list[BankedReply]]]:
    """Return (instance, judgment, state) -> side -> its replies, where both sides have two or more."""
    events: dict[tuple[str, str, str], dict[str, list[BankedReply]]] = {}
    for model, reply, state in name_states(replies, of_prompts=sides.column == "scenario"):
        event = events.setdefault((reply.instance, reply.judgment, state), {})
        event.setdefault(sides.of(model, reply), []).append(reply)
    return {place: event for place, event in events.items() if all(len(event.get(side, [])) > 1 for side in sides.names)}


def _running(run: Run, folder: Path, sides: ComparedSides) -> list[Divergence]:
    trials = run.trials[~run.trials["outcome"].isin(UNUSABLE)]
    by_trial = effects_by_trial(folder)
    return [
        divergence("running", architecture, "", events)
        for architecture in run.names("architecture")
        if (events := _events(trials[trials["architecture"] == architecture], by_trial, sides))
    ]


def _events(trials: pd.DataFrame, by_trial: Mapping[str, tuple[str, ...]], sides: ComparedSides) -> list[ComparedEvent]:
    events: list[ComparedEvent] = []
    for instance, rows in trials.groupby("instance", observed=True):
        these, those = ([by_trial[trial] for trial in rows.loc[rows[sides.column] == side, "trial"]] for side in sides.names)
        if min(len(these), len(those)) > 1:
            events.append(ComparedEvent(str(instance), these, those))
    return events


# What the boundary does to the divergence of two sides

LEVEL = 0.05


@dataclass(frozen=True)
class BoundaryLook:
    """How much smaller divergence beyond the spread is with all rules than without any, in one judgment or all ("").

    gaps      by instance, over all pairs of replies, and over those in which a side commits something
    idle      share of pairs of the two sides in which both commit nothing under the rules
    adjusted  p of the sign-flip test of each, by Holm over all looks
    """

    judgment: str
    events: int
    gaps: tuple[Rises, Rises]
    idle: float
    adjusted: tuple[float | None, float | None] = (None, None)
    family: int = 0

    @property
    def verdict(self) -> str:
        sides = [self._side(each) for each in (0, 1)]
        evidence = VerdictEvidence(
            factors=("strength",),
            pairs=self.events,
            could_differ=self.gaps[0].could_differ,
            units=len(self.gaps[0].by_instance),
            without_idle=sides[0] == sides[1] if sides[0] and self.idle else None,
        )
        if reason := reason_against_verdict(evidence, "strength"):
            return f"not comparable: {reason}"
        return {1: "smaller", -1: "larger"}.get(sides[0]) or self.gaps[0].open_verdict(self.family)

    def _side(self, which: Literal[0, 1]) -> int:
        """Return 1 if divergence is smaller with the rules, -1 if it is larger, 0 if neither can be told."""
        gap, p = self.gaps[which].contrast, self.adjusted[which]
        if p is None or p >= LEVEL or gap.low is None or gap.high is None:
            return 0
        return (gap.low > 0) - (gap.high < 0)


def looks(run: Run) -> list[BoundaryLook]:
    """Return the looks at what the boundary does to local divergence; [] for the running form."""
    sides = sides_of(run)
    assert run.folder is not None  # sides_of has checked it
    whole = _events_by_state(sides, list(replies_in(run.folder)))
    measured = [
        _look(judgment, [_compared_events(place, event, sides) for place, event in whole.items() if judgment in ("", place[1])])
        for judgment in (["", *dict.fromkeys(judgment for _, judgment, _ in whole)] if whole else [])
    ]
    adjusted = holm({(place, which): look.gaps[which].p for place, look in enumerate(measured) for which in (0, 1)})
    return [
        replace(look, adjusted=(adjusted[place, 0], adjusted[place, 1]), family=len(adjusted))
        for place, look in enumerate(measured)
    ]


def _compared_events(
    place: tuple[str, str, str], event: Mapping[str, list[BankedReply]], sides: ComparedSides
) -> list[ComparedEvent]:
    """Return the event without any check, and with all rules."""
    return [
        ComparedEvent(place[0], *([committed_output(reply, strength) for reply in event[side]] for side in sides.names))
        for strength in STRENGTHS
    ]


def _look(judgment: str, events: Sequence[Sequence[ComparedEvent]]) -> BoundaryLook:
    gaps = []
    for beyond in (_beyond_of_all, _beyond_of_acting):
        by_instance: dict[str, list[float]] = {}
        for none, rules in events:
            values = (beyond(none), beyond(rules))
            if values[0] is not None and values[1] is not None:
                by_instance.setdefault(none.instance, []).append(values[0] - values[1])
        known = sum(map(len, by_instance.values()))
        gaps.append(Rises({name: fmean(each) for name, each in by_instance.items()}, len(events), known))
    pairs = [pair == (None, None) for both in events for pair in product(both[1].first, both[1].second)]
    return BoundaryLook(judgment, len(events), (gaps[0], gaps[1]), fmean(pairs) if pairs else 0.0)


def _beyond_of_all(event: ComparedEvent) -> float | None:
    return beyond_spread([event])[0]


def _beyond_of_acting(event: ComparedEvent) -> float | None:
    """Return the divergence beyond the spread over the pairs in which something is committed; None if there are none."""

    def share(pairs: Iterable[tuple[object, object]]) -> float | None:
        acting = [this != that for this, that in pairs if (this, that) != (None, None)]
        return fmean(acting) if acting else None

    between = share(product(event.first, event.second))
    within = [each for seeds in (event.first, event.second) if (each := share(combinations(seeds, 2))) is not None]
    return between - fmean(within) if between is not None and within else None


# Tables and figures

LOOKS = (
    "smaller by: divergence beyond the spread without any check, less that with all rules; acting: over the pairs of replies "
    "in which at least one side commits something",
    "p: of the sign-flip test over instances, by Holm over all looks of this table",
    "verdict: on all pairs; not comparable if it does not stand without the pairs in which neither side does anything",
)


def _notes(noun: str) -> tuple[str, ...]:
    return (
        f"between: of pairs of replies or trials of the two {noun}s, those that committed something else; within: the same of "
        f"two seeds of one {noun}, the mean of both; beyond: their difference, which can be below zero",
        "local: each state is recorded and the same for both; running: each goes on from its own state, and effects with their "
        "arguments are compared at the end",
        "95% intervals are of resampled instances (expanded percentiles)",
        "first: the mean number of the first effect that differs, in pairs that differ",
    )


def _compared(run: Run, sides: ComparedSides) -> str:
    this, that = sides.names
    if sides.column == "model":
        return f"{model_label(run, this)} and {model_label(run, that)}"
    return f"{this} and {that}, {model_label(run, run.names('model')[0])}"


def _name(form: str, sides: ComparedSides) -> Sequence[str]:
    return ("study", "replay-divergence", form, *(["prompts"] if sides.column == "scenario" else []))


def tables(run: Run) -> Iterator[Table]:
    measured, sides = divergences(run), sides_of(run)
    columns = (
        TableColumn[Divergence]("Form", lambda row: row.form),
        TableColumn[Divergence]("Boundary", lambda row: row.boundary),
        TableColumn[Divergence]("Judgment", lambda row: row.place or "all"),
        TableColumn[Divergence]("Between", lambda row: row.between.cell(3) if row.between else "–"),
        TableColumn[Divergence]("Within", lambda row: row.within.cell(3) if row.within else "–"),
        TableColumn[Divergence]("Beyond", lambda row: row.beyond.cell(3)),
        TableColumn[Divergence]("Events", lambda row: row.events),
        TableColumn[Divergence]("Instances", lambda row: row.beyond.instances),
        TableColumn[Divergence]("First", lambda row: Number(row.first, 1)),
    )
    name = "-".join(_name(measured[0].form if measured else "none", sides))
    title = f"Replay divergence of {_compared(run, sides)}"
    yield table_of(name, title, columns, measured, _notes(sides.noun))
    if every := looks(run):
        of_look = (
            TableColumn[BoundaryLook]("Judgment", lambda row: row.judgment or "all"),
            TableColumn[BoundaryLook]("Neither commits", lambda row: Number(row.idle, 1, percent=True)),
            TableColumn[BoundaryLook]("Smaller by", lambda row: row.gaps[0].contrast.cell(3)),
            TableColumn[BoundaryLook]("p (Holm)", lambda row: AdjustedP(row.adjusted[0])),
            TableColumn[BoundaryLook]("Acting, smaller by", lambda row: row.gaps[1].contrast.cell(3)),
            TableColumn[BoundaryLook]("p (Holm), acting", lambda row: AdjustedP(row.adjusted[1])),
            TableColumn[BoundaryLook]("States", lambda row: row.events),
            TableColumn[BoundaryLook]("States, acting", lambda row: row.gaps[1].could_differ),
            TableColumn[BoundaryLook]("Verdict", lambda row: row.verdict),
        )
        title = f"Does the boundary make divergence smaller? {_compared(run, sides)}"
        yield table_of("-".join(_name("looks", sides)), title, of_look, every, LOOKS)


def pictures(run: Run) -> Iterator[Picture]:
    measured, sides = divergences(run), sides_of(run)
    figure, [ax] = panels(1, 1, 6.4, 1.2 + 0.34 * len(measured))
    for place, each in enumerate(measured):
        value, low, high = each.beyond.value, each.beyond.low, each.beyond.high
        if value is not None:
            errors = None if low is None or high is None else [[value - low], [high - value]]
            ax.errorbar([value], [place], xerr=errors, fmt="o", ms=4, color=BLUE, capsize=2, lw=1)
    ax.axvline(0.0, color=GREY, lw=0.8)
    ax.set_yticks(range(len(measured)), [f"{each.boundary}: {each.place or 'all'}".replace("_", " ") for each in measured])
    ax.invert_yaxis()
    ax.set_xlabel(f"divergence beyond the {sides.noun}s' own spread")
    ax.grid(axis="x", color=PALE, lw=0.6)
    title = f"Replay divergence ({measured[0].form}) of {_compared(run, sides)}"
    caption = (
        f"Share of pairs that commit something else, less that of two seeds of one {sides.noun}; 95% intervals by instance."
    )
    yield finish(figure, slug(*_name(measured[0].form, sides)), title, f"{title}. {caption}")
