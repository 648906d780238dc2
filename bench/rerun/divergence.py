"""Measure how often two models or prompts commit something different at the same events, beyond the difference between two
seeds of the same model or prompt.

The sides are models, prompts or architectures. The share of pairs of the two sides that differ, less the mean of the shares of
pairs of two seeds of each side, is taken by instance. It can be below zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from operator import ne
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.read.tables.contrasts import BootstrapMean, bootstrap_mean
from bench.record.events import of_kind
from bench.record.reading import read_records
from bench.record.record import TrialRecord, latest
from bench.record.world_events import ToolCalled
from bench.run.models.bank import BankedReply

Differ = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Divergence:
    """The divergence of two sides on the same events.

    form       `local` for judgments, `running` for effects at the end of a trial
    boundary   the strength of the boundary, or the architecture that ran
    place      the judgment, or "" for all
    between    the share of pairs of the two sides that differ, D(A, B)
    within     the share of pairs of two seeds of one side that differ, ½ (D(A, A′) + D(B, B′))
    beyond     `between` minus `within`
    events     the number of states in which both were asked, or of instances that both ran
    first      the mean number of the first effect that differs, from 1, in pairs that differ; None if no pair differs, or if
               the form is `local`
    """

    form: str
    boundary: str
    place: str
    between: BootstrapMean | None
    within: BootstrapMean | None
    beyond: BootstrapMean
    events: int
    first: float | None = None


@dataclass(frozen=True)
class ComparedEvent:
    """The outputs that the `first` and the `second` side committed at one event, one output for each seed."""

    instance: str
    first: Sequence[Any]
    second: Sequence[Any]


def name_states(replies: Iterable[tuple[str, BankedReply]], *, of_prompts: bool) -> Iterator[tuple[str, BankedReply, str]]:
    """Yield each model and reply with the name of the state in which the reply was asked for. Both sides of a comparison have
    the same names. If the sides are prompts (`of_prompts`), a name is the number of the state within its judgment."""
    state_counts: Counter[tuple[str, str, str, int, str]] = Counter()
    for model, reply in replies:
        place = (model, reply.scenario, reply.instance, reply.repetition, reply.judgment)
        state_counts[place] += 1
        yield model, reply, str(state_counts[place]) if of_prompts else reply.state


def committed_output(reply: BankedReply, strength: str) -> object:
    """Return the output that a boundary of this strength commits for a reply; None if it commits nothing. The output is the
    sorted fields without free-text notes, or the reply's text if the reply has no fields."""
    if reply.rejected and strength == "business_rule":
        return None
    if reply.output is None:
        return reply.text
    return sorted((name, value) for name, value in reply.output.items() if name not in reply.notes)


def effects_by_trial(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the effects of each trial in order, by the trial's id. An effect is a tool with its arguments."""
    records = latest(record for record in read_records(folder) if isinstance(record, TrialRecord))
    return {
        record.id: tuple(
            f"{call.tool} {call.arguments}"
            for call in of_kind(record.events, ToolCalled)
            if call.outcome == "done" and call.access != "read"
        )
        for record in records
    }


def divergence(form: str, boundary: str, place: str, events: Sequence[ComparedEvent]) -> Divergence:
    """Return the divergence of two sides over these events. `form`, `boundary` and `place` are as in `Divergence`."""
    differ = _effects_differ if form == "running" else ne
    instances = [event.instance for event in events]
    pairs = [pair for event in events for pair in product(event.first, event.second)]
    places = [_first_differing_number(*pair) for pair in pairs if form == "running" and differ(*pair)]
    return Divergence(
        form=form,
        boundary=boundary,
        place=place,
        between=mean_by_instance(instances, [_between(event, differ) for event in events]),
        within=mean_by_instance(instances, [_within(event, differ) for event in events]),
        beyond=mean_by_instance(instances, beyond_spread(events, differ)),
        events=len(events),
        first=fmean(places) if places else None,
    )


def _between(event: ComparedEvent, differ: Differ) -> float:
    """Return the share of pairs of the two sides that differ."""
    return fmean(differ(*pair) for pair in product(event.first, event.second))


def _within(event: ComparedEvent, differ: Differ) -> float:
    """Return the mean share of pairs of two seeds of one side that differ."""
    return fmean(fmean(differ(*pair) for pair in combinations(seeds, 2)) for seeds in (event.first, event.second))


def beyond_spread(events: Sequence[ComparedEvent], differ: Differ = ne) -> list[float]:
    """Return for each event the share of pairs in which the two sides differ, minus the share of pairs in which two seeds of
    one side differ."""
    return [_between(event, differ) - _within(event, differ) for event in events]


def _effects_differ(first_effects: Sequence[str], second_effects: Sequence[str]) -> bool:
    """Return whether two lists have different effects, in any order."""
    return sorted(first_effects) != sorted(second_effects)


def _first_differing_number(first_effects: Sequence[str], second_effects: Sequence[str]) -> int:
    """Return the number of the first effect that differs, from 1."""
    pairs = enumerate(zip(first_effects, second_effects, strict=False), 1)
    return next(
        (place for place, (first_effect, second_effect) in pairs if first_effect != second_effect),
        min(len(first_effects), len(second_effects)) + 1,
    )


def mean_by_instance(instances: Sequence[str], values: Sequence[float]) -> BootstrapMean:
    """Return the mean over instances of the mean within each instance."""
    by_instance: dict[str, list[float]] = {}
    for instance, value in zip(instances, values, strict=True):
        by_instance.setdefault(instance, []).append(value)
    return bootstrap_mean({instance: fmean(instance_values) for instance, instance_values in by_instance.items()})
