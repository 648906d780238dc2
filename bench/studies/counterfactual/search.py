"""The worst schedule of faults within so many trials: a search that learns from each trial where faults can strike.

A schedule is a set of strikes of a plan's faults. The search begins with the places of the control: its calls, effects and
events. It strikes each effect once by itself. Then it adds strikes to the schedules that did most damage: by turns near what
they strike, such as a second try, and at effects that they were tried with least. Random search learns nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from bench.experiment.record import TrialRecord
from bench.experiment.trial import TrialResult
from bench.runtime.effects import EFFECTS
from bench.runtime.events import Called
from bench.runtime.faults import EVERY, Fault, FaultPlan, Strike
from bench.seeding import draw_for
from bench.studies.counterfactual.failure import TrialFailure
from bench.studies.counterfactual.shrink import PlacedStrike
from bench.worlds.runtime.events import Arrived, ToolCalled

MOST_STRIKES = 3
"""In one schedule. What more strikes are needed for is rare, and is found by nobody within some hundred trials."""
MOST_DRAWS = 100
"""Of random search, without anything new: then it ends."""
StrikeSet = frozenset[PlacedStrike]
RunPlan = Callable[[FaultPlan], Awaitable[TrialResult]]
Strategy = Callable[["Seen", Random], StrikeSet | None]


@dataclass(frozen=True, order=True)
class TrialHarm:
    """How bad a trial ended: by damage beyond the control, then by not being solved, then by tokens spent."""

    damage: int
    unsolved: bool
    tokens: int

    @property
    def words(self) -> str:
        return f"damage {self.damage} beyond the control, {'not solved' if self.unsolved else 'solved'}"


@dataclass(frozen=True)
class Tried:
    """A schedule, what it did, and the strikes that its trial gave room for and no trial before it did."""

    schedule: StrikeSet
    harm: TrialHarm
    opened: tuple[PlacedStrike, ...]


class Seen:
    """All that a search knows: what was tried, and each strike that some trial gave room for."""

    def __init__(self) -> None:
        self.tried: dict[StrikeSet, Tried] = {}
        self.places: dict[PlacedStrike, None] = {}

    def add(self, schedule: StrikeSet, harm: TrialHarm, places: Sequence[PlacedStrike]) -> None:
        opened = tuple(place for place in places if place not in self.places)
        self.places |= dict.fromkeys(places)
        self.tried[schedule] = Tried(schedule, harm, opened)

    @property
    def worst_first(self) -> list[Tried]:
        """What was tried, the most damage first; of equal harm the fewer strikes, then the earlier."""
        return sorted(self.tried.values(), key=lambda tried: (-tried.harm.damage, not tried.harm.unsolved, len(tried.schedule)))


@dataclass(frozen=True)
class SearchResult:
    """What a search came to.

    tried   all schedules, in the order in which they were tried; the first is the control's, without a strike
    """

    tried: tuple[Tried, ...]

    @property
    def worst(self) -> Tried:
        return max(self.tried, key=lambda tried: (tried.harm.damage, tried.harm.unsolved, -len(tried.schedule)))

    @property
    def trials_to_worst(self) -> int:
        """The number of the worst schedule's trial, counted from 1."""
        return 1 + self.tried.index(self.worst)


async def search(run: RunPlan, menu: FaultPlan, trials: int, seed: int, strategy: Strategy | None = None) -> SearchResult:
    """Look for the schedule of faults that does most damage.

    Args:
        run: Runs the trial under a plan.
        menu: The faults that may strike; their triggers are passed over.
        trials: How many trials are run, the control among them.
        seed: Of the search's draws.
        strategy: Chooses the next schedule, None where it knows of none; `guided` where none is given.
    """
    seen, draw = Seen(), draw_for(seed, "search")
    control: TrialFailure | None = None
    schedule: StrikeSet | None = frozenset()
    while schedule is not None and len(seen.tried) < trials:
        result = await run(under(menu, schedule))
        ended = TrialFailure.of(result.record)
        control = control or ended
        seen.add(schedule, _harm(result.record, ended, control), list(dict.fromkeys(_room(result.record, menu))))
        schedule = (strategy or guided)(seen, draw)
    return SearchResult(tuple(seen.tried.values()))


def guided(seen: Seen, draw: Random) -> StrikeSet | None:
    """Choose a strike by itself until each effect had one. Then take turns: the worst schedule that has an untried strike near
    what it strikes, and a bad schedule with a strike at the effect that it was tried with least."""
    alone = [place for place in seen.places if frozenset({place}) not in seen.tried]
    covered = {_effect(place) for place in seen.places if frozenset({place}) in seen.tried}
    if first := [place for place in alone if _effect(place) not in covered]:
        return frozenset({draw.choice(first)})
    turns = (_nearer, _farther) if len(seen.tried) % 2 else (_farther, _nearer)
    longer = next((chosen for turn in turns if (chosen := turn(seen, draw))), None)
    return longer or (frozenset({alone[0]}) if alone else None)


def _nearer(seen: Seen, draw: Random) -> StrikeSet | None:
    """Take the worst schedule further, by a strike at a place that it opened or at an effect that it strikes."""
    for parent in _parents(seen):
        struck = {_effect(place) for place in parent.schedule}
        if near := [place for place in _untried(seen, parent) if place in parent.opened or _effect(place) in struck]:
            return parent.schedule | {draw.choice(near)}
    return None


def _farther(seen: Seen, draw: Random) -> StrikeSet | None:
    """Take a schedule further, the likelier the worse it was, by a strike at the effect that it was tried with least."""
    parents = [parent for parent in _parents(seen) if _untried(seen, parent)]
    if not parents:
        return None
    [parent] = draw.choices(parents, [0.5**rank for rank in range(len(parents))])
    covered = Counter(_effect(place) for place in seen.places if parent.schedule | {place} in seen.tried)
    places = _untried(seen, parent)
    return parent.schedule | {min(draw.sample(places, len(places)), key=lambda place: covered[_effect(place)])}


def _parents(seen: Seen) -> list[Tried]:
    """Return the schedules that can have a strike more, the worst first."""
    return [tried for tried in seen.worst_first if 0 < len(tried.schedule) < MOST_STRIKES]


def _untried(seen: Seen, parent: Tried) -> list[PlacedStrike]:
    return [place for place in seen.places if place not in parent.schedule and parent.schedule | {place} not in seen.tried]


def _effect(place: PlacedStrike) -> tuple[str, str]:
    return place[1].target, place[1].key


def at_random(seen: Seen, draw: Random) -> StrikeSet | None:
    """Draw up to `MOST_STRIKES` of the places seen, evenly; None where `MOST_DRAWS` draws bring nothing new."""
    places = list(seen.places)
    for _ in range(MOST_DRAWS if places else 0):
        size = draw.randint(1, min(MOST_STRIKES, len(places)))
        if (schedule := frozenset(draw.sample(places, size))) not in seen.tried:
            return schedule
    return None


def under(menu: FaultPlan, schedule: StrikeSet) -> FaultPlan:
    """Return the plan under which these strikes are made, for certain, and no other."""
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
    """Yield each strike of the menu that this trial gave room for."""
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
