"""The command `bench explain diverge`: what would another model, prompt or pattern have done on the same events?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bench.cli.completion import run_names
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import folder_of
from bench.record.cost import Tariff
from bench.record.equivalents import task_of
from bench.record.events import of_kind
from bench.record.reading import read_manifest, read_trials
from bench.record.record import TrialRecord, latest
from bench.record.world_events import WorldEnded
from bench.worlds.run.bank import replies_in

# It imports pandas and matplotlib, which slows down the start.
if TYPE_CHECKING:
    from bench.read.tables.contrasts import BootstrapMean
    from bench.rerun.divergence import Divergence

DivergenceOf = Literal["model", "architecture", "prompt"]
RECORDED_AS: Mapping[DivergenceOf, str] = {"model": "model", "architecture": "architecture", "prompt": "scenario"}
"""What the sides differ in -> the field of a trial that names it. Another prompt is an equivalent of the scenario."""
TrialCost = Callable[[TrialRecord], float | None]
EventPlace = tuple[str, str, str]
"""(instance, judgment, state) in the local form, (instance, plan, "") in the running form."""
EXIT_CODES = {"within": 0, "beyond": 1, "inconclusive": 3}
out = Terminal()


@dataclass(frozen=True)
class DivergenceSide:
    """One of the two sides: the trials of a run, or of one model, architecture or prompt in it."""

    name: str
    folder: Path
    of: DivergenceOf = "model"
    value: str = ""

    @cached_property
    def trials(self) -> list[TrialRecord]:
        records = latest(read_trials(self.folder))
        return [record for record in records if record.outcome not in ("error", "ungraded") and self._has(record)]

    def _has(self, record: TrialRecord) -> bool:
        return not self.value or getattr(record, RECORDED_AS[self.of]) == self.value

    def instance(self, scenario: str, instance: str) -> str:
        """Return the name of an instance for both sides: an equivalent's instance has its task's name."""
        return f"{task_of(scenario) if self.of == 'prompt' else scenario}/{instance}"


@dataclass(frozen=True)
class SpentBySides:
    """What a trial of each side takes, as a mean over instances, and how much more a trial of the second side takes."""

    these: BootstrapMean
    those: BootstrapMean
    more: BootstrapMean

    def words(self, unit: str, form: str) -> str:
        """Return the means and their difference in words, with each number in this form."""
        low, high = (form.format(end) for end in (self.more.low or 0.0, self.more.high or 0.0))
        interval = "" if self.more.low is None else f" [{low}, {high}]"
        means = f"{form.format(self.these.value)} and {form.format(self.those.value)}"
        return f"{means} {unit}, a difference of {form.format(self.more.value)}{interval}"


@dataclass(frozen=True)
class Diverged:
    """What was measured.

    tokens    what a trial takes; `dollars`: what it costs, or the model without known prices
    example   the first divergent effect of one pair
    """

    divergence: Divergence
    tokens: SpentBySides
    dollars: SpentBySides | str
    example: str

    def verdict(self, limit: float) -> str:
        """Return whether the divergence is within the limit, beyond it, or inconclusive."""
        low, high = self.interval
        if low is None or high is None:
            return "inconclusive"
        if high <= limit:
            return "within"
        return "beyond" if low > limit else "inconclusive"

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """The 95% interval. If no instance ever differs, or all always do, it is the exact bound on a share of this many
        instances."""
        beyond = self.divergence.beyond
        bound = 0.05 ** (1 / beyond.instances)
        if beyond.low is None and beyond.value == self.divergence.within.value == 0.0:  # type: ignore[union-attr]
            return 0.0, 1.0 - bound
        return (bound, 1.0) if beyond.low is None and beyond.value == 1.0 else (beyond.low, beyond.high)


def diverge(
    run: Annotated[
        str, typer.Argument(metavar="A", autocompletion=run_names, help="A run's name under results/, or its folder.")
    ],
    other: Annotated[
        str | None, typer.Argument(metavar="B", help="Another run; without it two sides of A are compared.")
    ] = None,
    of: Annotated[DivergenceOf, typer.Option(help="What the sides differ in: model, architecture or prompt.")] = "model",
    between: Annotated[
        list[str] | None, typer.Option(help="A side of A to compare, if A has more than two; given twice.")
    ] = None,
    limit: Annotated[float, typer.Option(min=0.0, max=1.0, help="The largest divergence that is accepted.")] = 0.05,
    whole: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say how far two models, prompts or patterns diverge.

    They are compared on the same events: runs of every_judgment state by state, other runs by the effects at the end and by the
    cost of a trial. Each side needs two repetitions, because its difference from itself is subtracted. Two prompts are a
    scenario and its equivalent, or two runs.

    Exit codes: 0 within the limit, 1 beyond it, 2 an error (one line says why), 3 inconclusive.

    For example: bench explain diverge RUN --of architecture --limit 0.1
    """
    if other and between:
        raise ConfigError("--between names two sides of one run; leave it out where two runs are compared")
    sides = _sides(folder_of(run), folder_of(other) if other else None, of, between or [])
    measured = diverged(*sides)
    verdict = measured.verdict(limit)
    lines = [_as_json(sides, measured, limit, verdict)] if whole else lines_of(sides, measured, limit)
    for line in lines:
        out.print(line)
    raise typer.Exit(EXIT_CODES[verdict])


def diverged(this: DivergenceSide, that: DivergenceSide) -> Diverged:
    """Compare two sides. Raise ResultsError if no event is in both sides twice or more."""
    from bench.rerun.divergence import ComparedEvent, divergence  # noqa: PLC0415

    form, left, right = "local", *map(_judgments, (this, that))
    if not (left and right):
        form, left, right = "running", *map(_effects, (this, that))
    shared = [event for event in left if min(len(left[event]), len(right.get(event, ()))) > 1]
    if not shared:
        problem = f"{this.name} and {that.name} have no instance in common that each ran twice or more"
        raise ResultsError(f"{problem}; run both with the same scenarios, seed and plans, and with repetitions = 2 or more")
    events = [ComparedEvent(event[0], left[event], right[event]) for event in shared]
    measured = divergence(form, "", "", events)
    tokens = _costs(*((side, lambda record: record.tokens) for side in (this, that)))
    return Diverged(measured, tokens, _dollars(this, that), _example(events, shared) if form == "running" else "")


def lines_of(sides: Sequence[DivergenceSide], measured: Diverged, limit: float) -> list[str]:
    """Return what was measured, one fact a line."""
    this, that = (side.name for side in sides)
    each, what = measured.divergence, "judgments" if measured.divergence.form == "local" else "effects at the end"
    between, within, beyond = each.between, each.within, each.beyond
    assert between
    assert within
    assert between.value is not None
    lines = [
        f"{this} and {that} differ in their {what} in {between.value:.1%} of pairs; "
        f"{beyond.value:.1%} [{', '.join(map(_share, measured.interval))}] remains after each side's difference from itself "
        "is subtracted.",
        f"  {each.form}: {each.events} events of {beyond.instances} instances; "
        f"a side differs from itself in {within.value:.1%} of pairs",
    ]
    if not within.value and between.value:
        lines.append("  neither side ever differs from itself, so nothing is subtracted")
    if each.first is not None:
        lines.append(f"  the first effect that differs has the number {each.first:.1f} in the mean; {measured.example}")
    lines.append(f"  a trial takes {measured.tokens.words('tokens', '{:,.0f}')}")
    if isinstance(measured.dollars, SpentBySides):
        lines.append(f"  a trial costs {measured.dollars.words('dollars', '{:.6f}')}")
    else:
        lines.append(f"  its dollars are not known: the config gives '{measured.dollars}' no price_in and price_out")
    sentences = {
        "within": f"Within the limit of {limit:.1%}.",
        "beyond": f"Beyond the limit of {limit:.1%}.",
        "inconclusive": f"Inconclusive against the limit of {limit:.1%}: more instances would decide.",
    }
    return [*lines, sentences[measured.verdict(limit)]]


def _sides(run: Path, other: Path | None, of: DivergenceOf, between: Sequence[str]) -> tuple[DivergenceSide, DivergenceSide]:
    config, *_ = [read_manifest(folder).config for folder in (run, other) if folder]
    if other:
        return DivergenceSide(run.name, run, of), DivergenceSide(other.name, other, of)
    ranked = [*config.models, *config.architectures]
    recorded = {getattr(record, RECORDED_AS[of]) for record in read_trials(run)}
    known = sorted(recorded, key=lambda name: (ranked.index(name) if name in ranked else 0, name))
    chosen = list(between) or known
    if unknown := [name for name in chosen if name not in known]:
        raise ConfigError(f"{of} '{unknown[0]}': {run.name} has none; it has {', '.join(known)}")
    if len(chosen) != 2:
        problem = f"{run.name}: two sides are compared, not {len(chosen)} ({of}: {', '.join(chosen)})"
        raise ConfigError(f"{problem}; name two with --between, or a second run")
    if of == "prompt" and len(set(map(task_of, chosen))) > 1:
        raise ConfigError(f"{' and '.join(chosen)} are two tasks; --of prompt compares a scenario with an equivalent of it")
    first, second = (DivergenceSide(name, run, of, name) for name in chosen)
    return first, second


def _dollars(this: DivergenceSide, that: DivergenceSide) -> SpentBySides | str:
    """Return the dollars of a trial of each side, or the first model without known prices."""
    costs: list[TrialCost] = []
    for side in (this, that):
        costs.append(cost := Tariff(read_manifest(side.folder).models).cost)
        if unpriced := [record.model for record in side.trials if cost(record) is None]:
            return unpriced[0]
    return _costs((this, costs[0]), (that, costs[1]))


def _costs(*sides: tuple[DivergenceSide, TrialCost]) -> SpentBySides:
    """Return what the trials took, over the instances and plans that both sides ran."""
    from bench.rerun.divergence import mean_by_instance  # noqa: PLC0415

    left, right = (_by_place(side, cost) for side, cost in sides)
    shared = [place for place in left if place in right]
    these, those = ([side[place] for place in shared] for side in (left, right))
    more = [second - first for first, second in zip(these, those, strict=True)]
    return SpentBySides(*(mean_by_instance([instance for instance, _ in shared], values) for values in (these, those, more)))


def _by_place(side: DivergenceSide, cost: TrialCost) -> dict[tuple[str, str], float]:
    """Return (instance, plan) -> mean cost of its trials."""
    costs: dict[tuple[str, str], list[float]] = {}
    for record in side.trials:
        costs.setdefault((side.instance(record.scenario, record.instance), record.plan), []).append(cost(record) or 0.0)
    return {place: fmean(each) for place, each in costs.items()}


def _judgments(side: DivergenceSide) -> dict[EventPlace, list[object]]:
    """Return what was committed for each reply, by its recorded state."""
    from bench.rerun.divergence import committed, with_state  # noqa: PLC0415

    events: dict[EventPlace, list[object]] = {}
    for model, reply, state in with_state(replies_in(side.folder), of_prompts=side.of == "prompt"):
        if side.value in ("", model, reply.scenario):
            place = (side.instance(reply.scenario, reply.instance), reply.judgment, state)
            events.setdefault(place, []).append(committed(reply, "none"))
    return events


def _effects(side: DivergenceSide) -> dict[EventPlace, list[object]]:
    """Return the effects of each trial, in order. Raise ResultsError if the trials have no world."""
    from bench.rerun.divergence import courses  # noqa: PLC0415

    trials = side.trials
    if not any(of_kind(record.events, WorldEnded) for record in trials):
        raise ResultsError(f"{side.name}: its trials have no effects to compare; name a run of a pack with a world")
    by_trial: Mapping[str, tuple[str, ...]] = courses(side.folder)
    events: dict[EventPlace, list[object]] = {}
    for record in trials:
        place = (side.instance(record.scenario, record.instance), record.plan, "")
        events.setdefault(place, []).append(by_trial[record.id])
    return events


def _example(events: Sequence[object], places: Sequence[EventPlace]) -> str:
    """Return the first divergent effect of the first pair that differs, in words."""
    for event, (where, plan, _) in zip(events, places, strict=True):
        these, those = event.these[0], event.those[0]  # type: ignore[attr-defined]
        for number, (this, that) in enumerate(zip((*these, "its end"), (*those, "its end"), strict=False), 1):
            if this != that:
                return f"on {where}, plan {plan}, effect {number}: {_tool(this)} and {_tool(that)}"
    return "no first pair of trials differs"


def _tool(effect: str) -> str:
    return effect if effect == "its end" else effect.split(maxsplit=1)[0]


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.1%}"


def _as_json(sides: Sequence[DivergenceSide], measured: Diverged, limit: float, verdict: str) -> str:
    each = measured.divergence
    document = {
        "sides": [side.name for side in sides],
        "form": each.form,
        **{name: vars(getattr(each, name)) for name in ("between", "within", "beyond")},
        "events": each.events,
        "first": each.first,
        "tokens": asdict(measured.tokens),
        "dollars": asdict(measured.dollars) if isinstance(measured.dollars, SpentBySides) else None,
        "limit": limit,
        "verdict": verdict,
    }
    return json.dumps(document, indent=2, default=str)
