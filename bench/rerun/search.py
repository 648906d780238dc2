"""A search for the worst fault schedule within a number of trials. The search learns from each trial where faults can be
injected.

A schedule is a set of strikes, that is, injected faults of a plan. The search begins with the places of the control: its
calls, effects and events. It injects a fault at each effect once. Then it adds strikes to the schedules that did most
damage, alternately near their strikes (for example at a second attempt) and at the effects that were tried with them least
often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from bench.common.seeding import draw_for
from bench.record.events import Called
from bench.record.plan_entries import EVERY
from bench.record.record import TrialRecord
from bench.record.world_events import Arrived, ToolCalled
from bench.rerun.rerun import TrialFailure
from bench.rerun.shrink import PlacedStrike
from bench.run.experiment.trial import TrialResult
from bench.run.trial.effects import EFFECTS
from bench.run.trial.faults import Fault, FaultPlan, Strike

MAX_STRIKES = 3
"""Strikes in one schedule. Failures that need more strikes are rare, and no search finds them within some hundred trials."""
StrikeSet = frozenset[PlacedStrike]
RunPlan = Callable[[FaultPlan], Awaitable[TrialResult]]
Strategy = Callable[["SearchState", Random], StrikeSet | None]


@dataclass(frozen=True, order=True)
class TrialHarm:
    """The harm in a trial. Damage beyond the control counts first, then whether the trial is unsolved, then the tokens
    spent."""

    damage: int
    unsolved: bool
    tokens: int

    @property
    def words(self) -> str:
        return f"damage {self.damage} beyond the control, {'not solved' if self.unsolved else 'solved'}"


@dataclass(frozen=True)
class TriedSchedule:
    """A fault schedule with the harm in its trial, and the strikes that first became possible in this trial (`new_places`)."""

    schedule: StrikeSet
    harm: TrialHarm
    new_places: tuple[PlacedStrike, ...]


class SearchState:
    """The state of a search: the tried schedules, and each strike that was possible in some trial (`places`)."""

    def __init__(self) -> None:
        self.tried: dict[StrikeSet, TriedSchedule] = {}
        self.places: dict[PlacedStrike, None] = {}

    def add(self, schedule: StrikeSet, harm: TrialHarm, places: Sequence[PlacedStrike]) -> None:
        """Add a schedule with its harm and its possible strikes."""
        new_places = tuple(place for place in places if place not in self.places)
        self.places |= dict.fromkeys(places)
        self.tried[schedule] = TriedSchedule(schedule, harm, new_places)

    @property
    def worst_first(self) -> list[TriedSchedule]:
        """The schedules by their damage, the worst first. With equal harm the schedule with fewer strikes is first, then the
        earlier schedule."""
        return sorted(self.tried.values(), key=lambda tried: (-tried.harm.damage, not tried.harm.unsolved, len(tried.schedule)))


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    tried   all schedules in the order of trying; the first is the control's, without a strike
    """

    tried: tuple[TriedSchedule, ...]

    @property
    def worst(self) -> TriedSchedule:
        return max(self.tried, key=lambda tried: (tried.harm.damage, tried.harm.unsolved, -len(tried.schedule)))

    @property
    def trials_to_worst(self) -> int:
        """The number of the worst schedule's trial, counted from 1."""
        return 1 + self.tried.index(self.worst)


async def search(run: RunPlan, menu: FaultPlan, trials: int, seed: int = 1, strategy: Strategy | None = None) -> SearchResult:
    """Search for the schedule of faults that does most damage.

    Args:
        run: The function that runs the trial under a fault plan.
        menu: The faults that can strike; their triggers are ignored.
        trials: How many trials are run, including the control.
        seed: The seed of the search's random choices.
        strategy: The function that returns the next schedule, or None to end the search; by default `next_schedule`.

    Returns:
        All schedules that were tried, with the damage of each.
    """
    state, draw = SearchState(), draw_for(seed, "search")
    control: TrialFailure | None = None
    schedule: StrikeSet | None = frozenset()
    while schedule is not None and len(state.tried) < trials:
        result = await run(plan_with(menu, schedule))
        end = TrialFailure.of(result.record)
        control = control or end
        damage_beyond = sum(max(0, times - control.damage.get(kind, 0)) for kind, times in end.damage.items())
        harm = TrialHarm(damage_beyond, end.outcome not in ("solved", "ungraded"), result.record.tokens)
        state.add(schedule, harm, list(dict.fromkeys(_strikes_in_trial(result.record, menu))))
        schedule = (strategy or next_schedule)(state, draw)
    return SearchResult(tuple(state.tried.values()))


def next_schedule(state: SearchState, draw: Random) -> StrikeSet | None:
    """Choose the next schedule.

    At first the schedule is a single strike, until each effect was struck once. Then the choice alternates between two
    extensions: the worst schedule with an untried strike near its strikes; and a bad schedule with a strike at the effect
    with which it was combined least often.
    """
    untried_singles = [place for place in state.places if frozenset({place}) not in state.tried]
    covered = {_effect_of(place) for place in state.places if frozenset({place}) in state.tried}
    if uncovered := [place for place in untried_singles if _effect_of(place) not in covered]:
        return frozenset({draw.choice(uncovered)})
    extensions = (_extend_nearby, _extend_at_rare_effect) if len(state.tried) % 2 else (_extend_at_rare_effect, _extend_nearby)
    longer = next((chosen for extend in extensions if (chosen := extend(state, draw))), None)
    return longer or (frozenset({untried_singles[0]}) if untried_singles else None)


def _extend_nearby(state: SearchState, draw: Random) -> StrikeSet | None:
    """Return the worst schedule with another strike: at a place that became possible in its trial, or at an effect that it
    strikes. Return None if no schedule can be extended so."""
    for parent in _parents(state):
        struck_effects = {_effect_of(place) for place in parent.schedule}
        if nearby := [
            place
            for place in _untried_places(state, parent)
            if place in parent.new_places or _effect_of(place) in struck_effects
        ]:
            return parent.schedule | {draw.choice(nearby)}
    return None


def _extend_at_rare_effect(state: SearchState, draw: Random) -> StrikeSet | None:
    """Return a schedule, drawn with a bias to the worst, with another strike: at the effect with which it was combined least
    often. Return None if no schedule can be extended."""
    parents = [parent for parent in _parents(state) if _untried_places(state, parent)]
    if not parents:
        return None
    [parent] = draw.choices(parents, [0.5**rank for rank in range(len(parents))])
    combined = Counter(_effect_of(place) for place in state.places if parent.schedule | {place} in state.tried)
    places = _untried_places(state, parent)
    shuffled = draw.sample(places, len(places))
    return parent.schedule | {min(shuffled, key=lambda place: combined[_effect_of(place)])}


def _parents(state: SearchState) -> list[TriedSchedule]:
    """Return the schedules that can have another strike, the worst first."""
    return [tried for tried in state.worst_first if 0 < len(tried.schedule) < MAX_STRIKES]


def _untried_places(state: SearchState, parent: TriedSchedule) -> list[PlacedStrike]:
    """Return the strikes with which the schedule was not yet extended."""
    return [place for place in state.places if place not in parent.schedule and parent.schedule | {place} not in state.tried]


def _effect_of(place: PlacedStrike) -> tuple[str, str]:
    """Return the tool (or subtask) and the business key that a strike is aimed at."""
    _, strike = place
    return strike.target, strike.key


def plan_with(menu: FaultPlan, schedule: StrikeSet) -> FaultPlan:
    """Return the plan that injects exactly the strikes of a schedule."""
    faults = []
    for number, fault in enumerate(menu.faults):
        strikes = [strike for fault_number, strike in schedule if fault_number == number]
        strikes.sort(key=lambda strike: (strike.target, strike.key, strike.attempt))
        faults.append(replace(fault, attempts=(), probability=1.0, only=tuple(strikes)))
    return replace(menu, faults=tuple(faults))


def _strikes_in_trial(record: TrialRecord, menu: FaultPlan) -> Iterator[PlacedStrike]:
    """Yield each strike of the menu's faults that was possible in this trial."""
    for event in record.events:
        for number, fault in enumerate(menu.faults):
            for strike in _possible_strikes(event, fault):
                if fault.subtask in (EVERY, strike.target):
                    yield number, strike


def _possible_strikes(event: object, fault: Fault) -> Iterator[Strike]:
    """Yield the strikes of a fault that this event allows."""
    match event:
        case ToolCalled() if fault.point in ("tool", "process") and event.effect:
            if EFFECTS[fault.effect, fault.point].on in ("any", "read" if event.access == "read" else "write"):
                yield Strike(event.tool, event.try_, event.effect)
        case Arrived() if fault.point == "event":
            yield Strike(event.what, 1, event.event)
        case Called() if fault.point in ("output", "input", "state", "call"):
            yield from (Strike(subtask, event.attempt) for subtask in event.subtasks)
