"""Damage: effects that went wrong in a world, counted from its journal and again from the pack's tables alone.

lost            an effect that ought to stand does not stand
doubled         an effect stands, or was taken back, more than once
orphaned        an effect happened and the agent has no record of it: it was not told, or died before it wrote
unauthorised    an effect against the policy, or without the person that it needed
uncompensated   a compensable effect ought not to stand and was not taken back
stale           an effect was based on something that had changed since the agent saw it
late            an effect came after its last moment

Exactly once means none of these. In both counts the pack says what ought to stand (`Standing.owed`). How often an effect stands
is counted in the journal from the calls that were done, and in the tables from their rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.record.damage import Damage, Harm
from bench.record.journal import JournalEntry
from bench.worlds.run.environment.declaration import Environment
from bench.worlds.run.environment.parts import Standing


def in_journal(
    environment: Environment, entries: Sequence[JournalEntry], known: Mapping[int, str], standings: Iterable[Standing]
) -> Damage:
    """Count the damage from the journal. Only `owed` is read from the standings. `known` has what the agent knows of each
    entry."""
    by_kind = harms(environment, entries, known, standings)
    return Damage(**{kind: sum(harm.times for harm in harms_of_kind) for kind, harms_of_kind in by_kind.items()})


def harms(
    environment: Environment, entries: Sequence[JournalEntry], known: Mapping[int, str], standings: Iterable[Standing]
) -> dict[str, list[Harm]]:
    """Return the damaged effects by kind of damage. `known` says by an entry's number what the agent knows of the entry, and
    `standings` say whether an effect ought to be."""
    effects = [entry for entry in entries if entry.is_effect]
    times = net_effects(environment, entries)
    owed = {standing.effect: standing.owed for standing in standings}
    compensable = {entry.effect for entry in effects if entry.kind == "compensable"}

    def harm_from_all_entries(effect: str, times_damaged: int = 1) -> Harm:
        return Harm(effect, times_damaged, tuple(entry.seq for entry in effects if entry.effect == effect))

    def harms_by_entry(goes_wrong: Callable[[JournalEntry], bool]) -> list[Harm]:
        return [Harm(entry.effect, 1, (entry.seq,)) for entry in effects if goes_wrong(entry)]

    missing = [effect for effect, ought in owed.items() if ought is True and times[effect] < 1]
    unwanted = [effect for effect, ought in owed.items() if ought is False and times[effect] > 0]

    return {
        "lost": [harm_from_all_entries(effect) for effect in missing],
        "doubled": [harm_from_all_entries(effect, extra) for effect, count in times.items() if (extra := _too_often(count))],
        "orphaned": harms_by_entry(lambda entry: not _is_known(entry, entries, known)),
        "unauthorised": harms_by_entry(lambda entry: entry.is_unauthorised),
        "uncompensated": [harm_from_all_entries(effect) for effect in unwanted if effect in compensable],
        "stale": harms_by_entry(lambda entry: entry.is_stale),
        "late": harms_by_entry(lambda entry: entry.late),
    }


def in_tables(standings: Sequence[Standing]) -> Damage:
    """Count damage from the rows of the pack's tables, as its audit reports them."""
    return Damage(
        lost=sum(standing.owed is True and standing.times < 1 for standing in standings),
        doubled=sum(_too_often(standing.times) for standing in standings),
        unauthorised=_total([standing.unauthorised for standing in standings]),
        uncompensated=sum(standing.owed is False and standing.compensable and standing.times > 0 for standing in standings),
        late=_total([standing.late for standing in standings]),
    )


def net_effects(environment: Environment, entries: Iterable[JournalEntry]) -> Counter[str]:
    """Return, for each business key, how often its effect was done minus how often it was undone."""
    times: Counter[str] = Counter()
    for entry in entries:
        if entry.is_effect:
            times[entry.effect] += -1 if entry.name in environment.undoes else 1
    return times


def _too_often(times: int) -> int:
    """Return how often an effect was done beyond once, or undone more often than done. `times` is done minus undone."""
    return times - 1 if times > 1 else max(0, -times)


def _total(counts: Sequence[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    return sum(count for count in counts if count is not None) if None not in counts else None


def _is_known(effect: JournalEntry, entries: Sequence[JournalEntry], known: Mapping[int, str]) -> bool:
    """Return whether the agent recorded that the effect happened, from the effect's own answer or from a later call that showed
    the effect."""
    return any(known.get(entry.seq) == "recorded" and _shows_effect(entry, effect) for entry in entries[effect.seq - 1 :])


def _shows_effect(entry: JournalEntry, effect: JournalEntry) -> bool:
    """Return whether the result of this call shows the effect: the effect's own call, a replay under its key, or a read of a
    thing that it changed."""
    if entry.seq == effect.seq:
        return True
    if entry.outcome == "replayed":
        return entry.key == effect.key
    if entry.kind != "read" or entry.outcome != "done":
        return False
    return any(entry.versions.get(thing, 0) >= version for thing, version in effect.versions.items())
