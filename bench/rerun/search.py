"""Find the worst schedule of faults within a number of trials: the search learns from each trial where faults can strike.

A schedule is a set of strikes of a plan's faults. The search begins with the places of the control: its calls, effects and
events. It strikes each effect once alone. Then it adds strikes to the schedules that did most damage: in turn near what they
strike, such as a second try, and at the effects that they were tried with least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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

MOST_STRIKES = 3
"""Strikes in one schedule. Failures that need more strikes are rare, and no search finds them within some hundred trials."""
StrikeSet = frozenset[PlacedStrike]
RunPlan = Callable[[FaultPlan], Awaitable[TrialResult]]
Strategy = Callable[["Seen", Random], StrikeSet | None]


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
class Tried:
    """A schedule of faults, its harm, and the strikes that first became possible in its trial."""

    schedule: StrikeSet
    harm: TrialHarm
    opened: tuple[PlacedStrike, ...]


class Seen:
    """The state of a search: the schedules that were tried, and each strike that some trial made possible."""

    def __init__(self) -> None:
        self.tried: dict[StrikeSet, Tried] = {}
        self.places: dict[PlacedStrike, None] = {}

    def add(self, schedule: StrikeSet, harm: TrialHarm, places: Sequence[PlacedStrike]) -> None:
        opened = tuple(place for place in places if place not in self.places)
        self.places |= dict.fromkeys(places)
        self.tried[schedule] = Tried(schedule, harm, opened)

    @property
    def worst_first(self) -> list[Tried]:
        """The schedules, most damage first; for equal harm fewer strikes first, then earlier ones."""
        return sorted(self.tried.values(), key=lambda tried: (-tried.harm.damage, not tried.harm.unsolved, len(tried.schedule)))


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    tried   all schedules in the order of trying; the first is the control's, without a strike
    """

    tried: tuple[Tried, ...]

    @property
    def worst(self) -> Tried:
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
    seen, draw = Seen(), draw_for(seed, "search")
    control: TrialFailure | None = None
    schedule: StrikeSet | None = frozenset()
    while schedule is not None and len(seen.tried) < trials:
        result = await run(under(menu, schedule))
        ended = TrialFailure.of(result.record)
        control = control or ended
        seen.add(schedule, _harm(result.record, ended, control), list(dict.fromkeys(_room(result.record, menu))))
        schedule = (strategy or next_schedule)(seen, draw)
    return SearchResult(tuple(seen.tried.values()))


def next_schedule(seen: Seen, draw: Random) -> StrikeSet | None:
    """Choose the next schedule. At first it is a single strike, until each effect was struck once. Then the choice alternates
    between the worst schedule with an untried strike near its strikes, and a bad schedule with a strike at the effect that it
    was combined with least often."""
    alone = [place for place in seen.places if frozenset({place}) not in seen.tried]
    covered = {_effect(place) for place in seen.places if frozenset({place}) in seen.tried}
    if first := [place for place in alone if _effect(place) not in covered]:
        return frozenset({draw.choice(first)})
    turns = (_nearer, _farther) if len(seen.tried) % 2 else (_farther, _nearer)
    longer = next((chosen for turn in turns if (chosen := turn(seen, draw))), None)
    return longer or (frozenset({alone[0]}) if alone else None)


def _nearer(seen: Seen, draw: Random) -> StrikeSet | None:
    """Extend the worst schedule by a strike at a place that it opened or at an effect that it strikes."""
    for parent in _parents(seen):
        struck = {_effect(place) for place in parent.schedule}
        if near := [place for place in _untried_places(seen, parent) if place in parent.opened or _effect(place) in struck]:
            return parent.schedule | {draw.choice(near)}
    return None


def _farther(seen: Seen, draw: Random) -> StrikeSet | None:
    """Extend a schedule, drawn with a bias to the worst, by a strike at the effect that it was tried with least."""
    parents = [parent for parent in _parents(seen) if _untried_places(seen, parent)]
    if not parents:
        return None
    [parent] = draw.choices(parents, [0.5**rank for rank in range(len(parents))])
    covered = Counter(_effect(place) for place in seen.places if parent.schedule | {place} in seen.tried)
    places = _untried_places(seen, parent)
    return parent.schedule | {min(draw.sample(places, len(places)), key=lambda place: covered[_effect(place)])}


def _parents(seen: Seen) -> list[Tried]:
    """Return the schedules that can have another strike, the worst first."""
    return [tried for tried in seen.worst_first if 0 < len(tried.schedule) < MOST_STRIKES]


def _untried_places(seen: Seen, parent: Tried) -> list[PlacedStrike]:
    return [place for place in seen.places if place not in parent.schedule and parent.schedule | {place} not in seen.tried]


def _effect(place: PlacedStrike) -> tuple[str, str]:
    return place[1].target, place[1].key


def under(menu: FaultPlan, schedule: StrikeSet) -> FaultPlan:
    """Return the plan under which exactly these strikes happen with certainty."""
    struck: Mapping[int, list[Strike]] = {number: [] for number in range(len(menu.faults))}
    for number, strike in sorted(schedule, key=lambda struck: (struck[0], struck[1].target, struck[1].key, struck[1].attempt)):
        struck[number].append(strike)
    faults = (
        replace(fault, attempts=(), probability=1.0, only=tuple(struck[number])) for number, fault in enumerate(menu.faults)
    )
    return replace(menu, faults=tuple(faults))


def _harm(record: TrialRecord, ended: TrialFailure, control: TrialFailure) -> TrialHarm:
    beyond = sum(max(0, times - control.damage.get(kind, 0)) for kind, times in ended.damage.items())
    return TrialHarm(beyond, record.outcome not in ("solved", "ungraded"), record.tokens)


def _room(record: TrialRecord, menu: FaultPlan) -> Iterator[PlacedStrike]:
    """Yield each strike of the menu that was possible in this trial."""
    for event in record.events:
        for number, fault in enumerate(menu.faults):
            for strike in _strikes(event, fault):
                if fault.subtask in (EVERY, strike.target):
                    yield number, strike


def _strikes(event: object, fault: Fault) -> Iterator[Strike]:
    match event:
        case ToolCalled() if fault.point in ("tool", "process") and event.effect:
            if EFFECTS[fault.effect, fault.point].on in ("any", "read" if event.access == "read" else "write"):
                yield Strike(event.tool, event.try_, event.effect)
        case Arrived() if fault.point == "event":
            yield Strike(event.what, 1, event.event)
        case Called() if fault.point in ("output", "input", "state", "call"):
            yield from (Strike(subtask, event.attempt) for subtask in event.subtasks)
