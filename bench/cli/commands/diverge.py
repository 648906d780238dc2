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

from bench.cli.commands.completion import run_names
from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, ResultsError
from bench.common.paths import folder_of
from bench.record.cost import Tariff
from bench.record.equivalents import task_of
from bench.record.events import of_kind
from bench.record.reading import read_manifest, read_trials
from bench.record.record import TrialRecord, latest
from bench.record.world_events import WorldEnded
from bench.worlds.run.simulated.bank import replies_in

# It imports pandas and matplotlib, which slows down the start.
if TYPE_CHECKING:
    from bench.read.tables.contrasts import BootstrapMean
    from bench.rerun.divergence import Divergence

DivergenceOf = Literal["model", "architecture", "prompt"]
RECORDED_AS: Mapping[DivergenceOf, str] = {"model": "model", "architecture": "architecture", "prompt": "scenario"}
"""The thing that the sides differ in -> the field of a trial with its name. Another prompt is an equivalent scenario."""
TrialCost = Callable[[TrialRecord], float | None]
EventPlace = tuple[str, str, str]
"""The key of an event: (instance, judgment, state) if judgments are compared state by state (the local form), and
(instance, plan, "") if the effects of whole trials are compared (the running form)."""
EXIT_CODES = {"within": 0, "beyond": 1, "inconclusive": 3}
out = Terminal()


@dataclass(frozen=True)
class DivergenceSide:
    """One of the two compared sides: the trials of a run, or of one model, architecture or prompt of a run."""

    name: str
    folder: Path
    of: DivergenceOf = "model"
    value: str = ""

    @cached_property
    def trials(self) -> list[TrialRecord]:
        records = latest(read_trials(self.folder))
        return [record for record in records if record.outcome not in ("error", "ungraded") and self._has(record)]

    def _has(self, record: TrialRecord) -> bool:
        """Whether a record is of this side's model, architecture or prompt."""
        return not self.value or getattr(record, RECORDED_AS[self.of]) == self.value

    def instance(self, scenario: str, instance: str) -> str:
        """Return the name of an instance for both sides. An instance of an equivalent scenario has the name of its task."""
        return f"{task_of(scenario) if self.of == 'prompt' else scenario}/{instance}"


@dataclass(frozen=True)
class SideMeans:
    """The mean cost of a trial on each side over all instances, and the difference of the two means."""

    first: BootstrapMean
    second: BootstrapMean
    difference: BootstrapMean

    def as_json(self) -> dict[str, object]:
        """Return the means and their difference under the names of the command's JSON."""
        return {"these": asdict(self.first), "those": asdict(self.second), "more": asdict(self.difference)}

    def words(self, unit: str, form: str) -> str:
        """Return the two means and their difference as text. `form` is the number format."""
        low, high = (form.format(end) for end in (self.difference.low or 0.0, self.difference.high or 0.0))
        interval = "" if self.difference.low is None else f" [{low}, {high}]"
        means = f"{form.format(self.first.value)} and {form.format(self.second.value)}"
        return f"{means} {unit}, a difference of {form.format(self.difference.value)}{interval}"


@dataclass(frozen=True)
class DivergenceResult:
    """The measured divergence of two sides.

    tokens    the tokens of a trial
    dollars   the dollars of a trial, or the name of the model without known prices
    example   the first differing effect of one pair
    """

    divergence: Divergence
    tokens: SideMeans
    dollars: SideMeans | str
    example: str

    def verdict(self, limit: float) -> str:
        """Return "within" if the whole interval is within the limit, "beyond" if it is all above the limit, else
        "inconclusive"."""
        low, high = self.interval
        if low is None or high is None:
            return "inconclusive"
        if high <= limit:
            return "within"
        return "beyond" if low > limit else "inconclusive"

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """The 95% interval. If no instance ever differs, or if all instances always differ, it is the exact bound on a share
        of this many instances."""
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
        str | None, typer.Argument(metavar="B", help="Another run; without this run two sides of A are compared.")
    ] = None,
    of: Annotated[DivergenceOf, typer.Option(help="What the sides differ in: model, architecture or prompt.")] = "model",
    between: Annotated[
        list[str] | None, typer.Option(help="One of the two sides to compare, if A has more than two; give it twice.")
    ] = None,
    limit: Annotated[float, typer.Option(min=0.0, max=1.0, help="The largest accepted divergence.")] = 0.05,
    prints_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how far two models, prompts or patterns diverge.

    The two sides are compared on the same events: runs of every_judgment state by state, other runs by the effects at the end
    and by the cost of a trial. Each side needs two repetitions, because the difference between them is subtracted. Two prompts
    are a scenario and its equivalent, or two runs.

    Exit codes: 0 within the limit, 1 beyond it, 2 an error (one line says why), 3 inconclusive.

    For example: bench explain diverge RUN --of architecture --limit 0.1
    """
    if other and between:
        raise ConfigError("--between names two sides of one run; leave it out where two runs are compared")
    sides = _sides(folder_of(run), folder_of(other) if other else None, of, between or [])
    measured = compare_sides(*sides)
    verdict = measured.verdict(limit)
    lines = [_as_json(sides, measured, limit, verdict)] if prints_json else lines_of(sides, measured, limit)
    for line in lines:
        out.print(line)
    raise typer.Exit(EXIT_CODES[verdict])


def compare_sides(first_side: DivergenceSide, second_side: DivergenceSide) -> DivergenceResult:
    """Compare two sides by their judgments, or, if a side has none, by their effects. Raise ResultsError if no event is in both
    sides twice or more."""
    from bench.rerun.divergence import ComparedEvent, divergence  # noqa: PLC0415

    event_form, first_events, second_events = "local", *map(_judgments, (first_side, second_side))
    if not (first_events and second_events):
        event_form, first_events, second_events = "running", *map(_effects, (first_side, second_side))
    shared_events = [event for event in first_events if min(len(first_events[event]), len(second_events.get(event, ()))) > 1]
    if not shared_events:
        problem = f"{first_side.name} and {second_side.name} have no instance in common that each ran twice or more"
        raise ResultsError(f"{problem}; run both with the same scenarios, seed and plans, and with repetitions = 2 or more")
    events = [ComparedEvent(event[0], first_events[event], second_events[event]) for event in shared_events]
    measured = divergence(event_form, "", "", events)
    tokens = _costs(*((side, lambda record: record.tokens) for side in (first_side, second_side)))
    return DivergenceResult(
        measured, tokens, _dollars(first_side, second_side), _example(events, shared_events) if event_form == "running" else ""
    )


def lines_of(sides: Sequence[DivergenceSide], measured: DivergenceResult, limit: float) -> list[str]:
    """Return the lines about the measured divergence."""
    first_name, second_name = (side.name for side in sides)
    divergence = measured.divergence
    compared_things = "judgments" if divergence.form == "local" else "effects at the end"
    between, within, beyond = divergence.between, divergence.within, divergence.beyond
    assert between
    assert within
    assert between.value is not None
    lines = [
        f"{first_name} and {second_name} differ in their {compared_things} in {between.value:.1%} of pairs; "
        f"{beyond.value:.1%} [{', '.join(map(_share, measured.interval))}] remains after each side's difference from itself "
        "is subtracted.",
        f"  {divergence.form}: {divergence.events} events of {beyond.instances} instances; "
        f"a side differs from itself in {within.value:.1%} of pairs",
    ]
    if not within.value and between.value:
        lines.append("  neither side ever differs from itself, so nothing is subtracted")
    if divergence.first is not None:
        lines.append(f"  the first effect that differs has the number {divergence.first:.1f} in the mean; {measured.example}")
    lines.append(f"  a trial takes {measured.tokens.words('tokens', '{:,.0f}')}")
    if isinstance(measured.dollars, SideMeans):
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
    """Return the two sides to compare: two runs, or two models, architectures or prompts of one run. Raises ConfigError if
    `between` names no two sides, or if it is empty and the run does not have exactly two."""
    config, *_ = [read_manifest(folder).config for folder in (run, other) if folder]
    if other:
        return DivergenceSide(run.name, run, of), DivergenceSide(other.name, other, of)
    declared_names = [*config.models, *config.architectures]
    recorded_names = {getattr(record, RECORDED_AS[of]) for record in read_trials(run)}
    known_names = sorted(recorded_names, key=lambda name: (declared_names.index(name) if name in declared_names else 0, name))
    chosen_names = list(between) or known_names
    if unknown := [name for name in chosen_names if name not in known_names]:
        raise ConfigError(f"{of} '{unknown[0]}': {run.name} has none; it has {', '.join(known_names)}")
    if len(chosen_names) != 2:
        problem = f"{run.name}: two sides are compared, not {len(chosen_names)} ({of}: {', '.join(chosen_names)})"
        raise ConfigError(f"{problem}; name two with --between, or a second run")
    if of == "prompt" and len(set(map(task_of, chosen_names))) > 1:
        raise ConfigError(
            f"{' and '.join(chosen_names)} are two tasks; --of prompt compares a scenario with an equivalent of it"
        )
    first, second = (DivergenceSide(name, run, of, name) for name in chosen_names)
    return first, second


def _dollars(first_side: DivergenceSide, second_side: DivergenceSide) -> SideMeans | str:
    """Return the dollars of a trial on each side, or the name of the first model without known prices."""
    costs: list[TrialCost] = []
    for side in (first_side, second_side):
        costs.append(cost := Tariff(read_manifest(side.folder).models).cost)
        if unpriced := [record.model for record in side.trials if cost(record) is None]:
            return unpriced[0]
    return _costs((first_side, costs[0]), (second_side, costs[1]))


def _costs(*sides: tuple[DivergenceSide, TrialCost]) -> SideMeans:
    """Return the cost of the trials on each side, over the instances and plans that both sides ran."""
    from bench.rerun.divergence import mean_by_instance  # noqa: PLC0415

    first_costs, second_costs = (_by_place(side, cost) for side, cost in sides)
    shared_places = [place for place in first_costs if place in second_costs]
    first_values, second_values = ([side[place] for place in shared_places] for side in (first_costs, second_costs))
    differences = [second - first for first, second in zip(first_values, second_values, strict=True)]
    return SideMeans(
        *(
            mean_by_instance([instance for instance, _ in shared_places], values)
            for values in (first_values, second_values, differences)
        )
    )


def _by_place(side: DivergenceSide, cost: TrialCost) -> dict[tuple[str, str], float]:
    """Return the mean cost of the trials of each instance and plan."""
    costs: dict[tuple[str, str], list[float]] = {}
    for record in side.trials:
        costs.setdefault((side.instance(record.scenario, record.instance), record.plan), []).append(cost(record) or 0.0)
    return {place: fmean(values) for place, values in costs.items()}


def _judgments(side: DivergenceSide) -> dict[EventPlace, list[object]]:
    """Return the committed outputs of the replies on this side, by instance, judgment and recorded state."""
    from bench.rerun.divergence import committed_output, name_states  # noqa: PLC0415

    events: dict[EventPlace, list[object]] = {}
    for model, reply, state in name_states(replies_in(side.folder), of_prompts=side.of == "prompt"):
        if side.value in ("", model, reply.scenario):
            place = (side.instance(reply.scenario, reply.instance), reply.judgment, state)
            events.setdefault(place, []).append(committed_output(reply, "none"))
    return events


def _effects(side: DivergenceSide) -> dict[EventPlace, list[object]]:
    """Return the effects of the trials on this side in their order, by instance and plan. Raise ResultsError if the trials
    have no world."""
    from bench.rerun.divergence import effects_by_trial  # noqa: PLC0415

    trials = side.trials
    if not any(of_kind(record.events, WorldEnded) for record in trials):
        raise ResultsError(f"{side.name}: its trials have no effects to compare; name a run of a pack with a world")
    by_trial: Mapping[str, tuple[str, ...]] = effects_by_trial(side.folder)
    events: dict[EventPlace, list[object]] = {}
    for record in trials:
        place = (side.instance(record.scenario, record.instance), record.plan, "")
        events.setdefault(place, []).append(by_trial[record.id])
    return events


def _example(events: Sequence[object], places: Sequence[EventPlace]) -> str:
    """Describe the first differing effect of the first pair that differs."""
    for event, (instance, plan, _) in zip(events, places, strict=True):
        first, second = event.first[0], event.second[0]  # type: ignore[attr-defined]
        for number, (first_effect, second_effect) in enumerate(zip((*first, "its end"), (*second, "its end"), strict=False), 1):
            if first_effect != second_effect:
                return f"on {instance}, plan {plan}, effect {number}: {_tool(first_effect)} and {_tool(second_effect)}"
    return "no first pair of trials differs"


def _tool(effect: str) -> str:
    """Return the name of the tool in an effect's text."""
    return effect if effect == "its end" else effect.split(maxsplit=1)[0]


def _share(value: float | None) -> str:
    """Return a share as a percentage; ? if the share is unknown."""
    return "?" if value is None else f"{value:.1%}"


def _as_json(sides: Sequence[DivergenceSide], measured: DivergenceResult, limit: float, verdict: str) -> str:
    """Return the divergence as JSON."""
    divergence = measured.divergence
    document = {
        "sides": [side.name for side in sides],
        "form": divergence.form,
        **{name: vars(getattr(divergence, name)) for name in ("between", "within", "beyond")},
        "events": divergence.events,
        "first": divergence.first,
        "tokens": measured.tokens.as_json(),
        "dollars": measured.dollars.as_json() if isinstance(measured.dollars, SideMeans) else None,
        "limit": limit,
        "verdict": verdict,
    }
    return json.dumps(document, indent=2, default=str)
