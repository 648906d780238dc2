"""Damage: what went wrong in a world, counted from its journal, and a second time from the pack's tables alone.

    lost            an effect that ought to stand, and does not
    doubled         an effect that stands, or was taken back, more than once
    orphaned        an effect that happened, and of which the agent has no record: it never heard, or died before it wrote
    unauthorised    an effect against the policy, or without the person that it needed
    uncompensated   a compensable effect that ought not to stand, and was not taken back
    stale           an effect based on what had changed since the agent saw it
    late            an effect after its last moment

Exactly once is none of these. What ought to stand is the pack's word (`Standing.owed`), in both counts; how often it does is
counted in the journal from the calls that were done, and in the tables from their rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from bench.worlds.environment.declaration import Environment
from bench.worlds.environment.journal import JournalEntry
from bench.worlds.environment.parts import Standing


@dataclass(frozen=True)
class Damage:
    """How often each happened in one trial; None where this count cannot tell."""

    lost: int = 0
    doubled: int = 0
    orphaned: int | None = None
    unauthorised: int | None = None
    uncompensated: int = 0
    stale: int | None = None
    late: int | None = None

    @property
    def total(self) -> int:
        return sum(count or 0 for count in asdict(self).values())

    def agrees(self, other: Damage) -> bool:
        """Whether the two counts say the same of all that both can tell."""
        pairs = zip(asdict(self).values(), asdict(other).values(), strict=True)
        return all(first == two for first, two in pairs if first is not None and two is not None)


DAMAGES = tuple(field.name for field in fields(Damage))
"""Every kind of damage, by its name."""


def in_journal(
    environment: Environment, entries: Sequence[JournalEntry], known: Mapping[int, str], standings: Iterable[Standing]
) -> Damage:
    """Counted from the journal; of the standings only what is owed is read."""
    by_kind = harms(environment, entries, known, standings)
    return Damage(**{kind: sum(harm.times for harm in each) for kind, each in by_kind.items()})


@dataclass(frozen=True)
class Harm:
    """An effect that went wrong, how often, and the entries of the journal that it was counted from: none of what is lost."""

    effect: str
    times: int
    entries: tuple[int, ...]


def harms(
    environment: Environment, entries: Sequence[JournalEntry], known: Mapping[int, str], standings: Iterable[Standing]
) -> dict[str, list[Harm]]:
    """Kind of damage -> what it is counted from."""
    effects = [entry for entry in entries if entry.is_effect]
    times = net_effects(environment, entries)
    owed = {standing.effect: standing.owed for standing in standings}
    compensable = {entry.effect for entry in effects if entry.kind == "compensable"}

    def whole(effect: str, count: int = 1) -> Harm:
        return Harm(effect, count, tuple(entry.seq for entry in effects if entry.effect == effect))

    def each(goes_wrong: Callable[[JournalEntry], bool]) -> list[Harm]:
        return [Harm(entry.effect, 1, (entry.seq,)) for entry in effects if goes_wrong(entry)]

    return {
        "lost": [whole(effect) for effect, ought in owed.items() if ought is True and times[effect] < 1],
        "doubled": [whole(effect, often) for effect, count in times.items() if (often := _too_often(count))],
        "orphaned": each(lambda entry: not _is_known(entry, entries, known)),
        "unauthorised": each(lambda entry: entry.is_unauthorised),
        "uncompensated": [
            whole(effect) for effect, ought in owed.items() if effect in compensable and ought is False and times[effect] > 0
        ],
        "stale": each(lambda entry: entry.is_stale),
        "late": each(lambda entry: entry.late),
    }


def in_tables(standings: Sequence[Standing]) -> Damage:
    """Counted from the rows of the pack's tables, as its audit tells them."""
    return Damage(
        lost=sum(standing.owed is True and standing.times < 1 for standing in standings),
        doubled=sum(_too_often(standing.times) for standing in standings),
        unauthorised=_told([standing.unauthorised for standing in standings]),
        uncompensated=sum(standing.owed is False and standing.compensable and standing.times > 0 for standing in standings),
        late=_told([standing.late for standing in standings]),
    )


def net_effects(environment: Environment, entries: Iterable[JournalEntry]) -> Counter[str]:
    """Business key -> how often it was done, less how often it was undone."""
    times: Counter[str] = Counter()
    for entry in entries:
        if entry.is_effect:
            times[entry.effect] += -1 if entry.name in environment.undoes else 1
    return times


def _too_often(times: int) -> int:
    return times - 1 if times > 1 else max(0, -times)


def _told(counts: Sequence[int | None]) -> int | None:
    return sum(count for count in counts if count is not None) if None not in counts else None


def _is_known(effect: JournalEntry, entries: Sequence[JournalEntry], known: Mapping[int, str]) -> bool:
    """Whether the agent recorded that it happened: from its own receipt, or from a later call that told it."""
    return any(known.get(entry.seq) == "recorded" and _tells(entry, effect) for entry in entries[effect.seq - 1 :])


def _tells(entry: JournalEntry, effect: JournalEntry) -> bool:
    """Whether what came of this call tells of the effect: its own, the same under its key, or a read of what it changed."""
    if entry.seq == effect.seq:
        return True
    if entry.outcome == "replayed":
        return entry.key == effect.key
    if entry.kind != "read" or entry.outcome != "done":
        return False
    return any(entry.versions.get(thing, 0) >= version for thing, version in effect.versions.items())
