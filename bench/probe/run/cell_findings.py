"""Collects the findings on a cell, by the effects of the clean runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.probe.run.agent_run import AgentRun
from bench.probe.run.clean import Clean, CleanEffect
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.volatile import place_of
from bench.record.probe_events import FindingKind
from bench.record.probe_rows import RowDifference


@dataclass
class FindingRows:
    """The rows and calls of one finding, while they are collected."""

    times: int
    rows: list[RowDifference]
    calls: set[int]


class EffectOnRow(NamedTuple):
    """An effect of the clean run, with a row as this effect changed it."""

    effect: CleanEffect
    row: RowDifference


class CellFindings:
    """The findings on a cell, while they are collected.

    identities   call number of the cell -> the call's identity
    """

    def __init__(self, clean: Clean, agent_run: AgentRun):
        self._clean = clean
        self._readings_by_row, self._times_done = agent_run.readings_by_row(), agent_run.times_done()
        self.identities = {call.number: identity for call, identity in zip(agent_run.calls, agent_run.identities, strict=True)}
        self._rows_by_finding = dict[tuple[FindingKind, str], FindingRows]()
        self._effects_by_row = _effects_by_row(clean.effects)

    def __iter__(self) -> Iterator[tuple[FindingKind, str, FindingRows]]:
        """Yield the kind, the effect, and the rows and calls of each finding, in the order in which they were found."""
        for (kind, effect), collected in self._rows_by_finding.items():
            yield kind, effect, collected

    def add(self, kind: FindingKind, effect: str, times: int, row: RowDifference) -> None:
        """Add a row to the finding of this kind on an effect, which the row shows `times` times. The finding has the largest
        number of its rows if the effect is doubled, else the smallest. Its calls are those that make the effect in the clean
        runs, or all calls in flight at the change if none of them does."""
        collected = self._rows_by_finding.setdefault((kind, effect), FindingRows(times, [], set()))
        collected.times = max(collected.times, times) if kind == "doubled" else min(collected.times, times)
        if collected.rows[-1:] != [row]:  # a row can differ in several columns, which are compared one after another
            collected.rows.append(row)
        identities = self.identities_of(effect)
        if kind == "lost":
            makers = {number for number, identity in self.identities.items() if identity in identities}
        else:
            makers = self.calls_at_change(row)
        collected.calls |= {number for number in makers if self.identities[number] in identities} or makers

    def add_unknown_row(self, row: RowDifference) -> None:
        """Add the finding on a row that no clean run changes. The effect of a call is doubled if the call was done more often,
        and changes another row in the same way in the clean runs: it took the next parcel, or wrote a line with the next
        number. Otherwise the row is extra."""
        makers = {self.identities[number] for number in self.calls_at_change(row)}
        for effect in self._clean.effects:
            has_shape = any(_change_shape(clean_row) == _change_shape(row) for clean_row in effect.rows)
            if has_shape and makers & effect.identities and (times := self.times_by_journal(effect)) > 1:
                self.add("doubled", effect.name, times, row)
                return
        self.add("extra", "", 1, row)

    def calls_at_change(self, row: RowDifference) -> set[int]:
        """Return the numbers of the calls that were in flight when a row changed."""
        return {number for reading in self._readings_by_row.get(place_of(row), ()) for number in reading.calls}

    def effects_on(self, row: RowDifference) -> Sequence[EffectOnRow]:
        """Return the effects of the clean runs on a row, in their order."""
        return self._effects_by_row.get(place_of(row), ())

    def maker_of(self, row: RowDifference) -> str:
        """Return the name of the effect that added a clean row."""
        effects = self.effects_on(row)
        return effects[0].effect.name if effects else ""

    def times_by_journal(self, effect: CleanEffect) -> int:
        """Return how often an effect was made according to the journal, if a clean run makes it once: 1 plus the largest
        difference from the clean runs in the times that a call with this effect was done."""
        clean_times = self._clean.counts
        return 1 + max((self._times_done[identity] - clean_times[identity] for identity in effect.identities), default=0)

    def identities_of(self, effect: str) -> set[str]:
        """Return the identities of the calls that make an effect in the clean runs."""
        effects = [clean_effect for clean_effect in self._clean.effects if clean_effect.name == effect]
        return {identity for clean_effect in effects for identity in clean_effect.identities}


def _change_shape(row: RowDifference) -> tuple[object, ...]:
    """Return how a row changed, without its key and values: its table, whether it was added or removed, and the columns that
    changed."""
    before, after = row.before or {}, row.after or {}
    changed = frozenset(name for name in {**before, **after} if before.get(name) != after.get(name))
    return row.store, row.table, row.before is None, row.after is None, changed if row.before and row.after else None


def _effects_by_row(effects: Sequence[CleanEffect]) -> Mapping[RowPlace, Sequence[EffectOnRow]]:
    """Return the effects on each row, in their order."""
    effects_by_row = defaultdict[RowPlace, list[EffectOnRow]](list)
    for effect in effects:
        for row in effect.rows:
            effects_by_row[place_of(row)].append(EffectOnRow(effect, row))
    return effects_by_row
