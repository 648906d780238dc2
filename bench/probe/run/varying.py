"""Judge values that vary between clean runs. Their amounts say nothing, so their changes are counted: a debit of another amount
is a debit again. A value that is set again is no further effect, and a value of which neither is sure gives no verdict."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.probe.run.cell_parts import changed_parts, json_growth
from bench.probe.run.course import AgentCourse
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.times import added_part, is_time, number_of
from bench.probe.run.volatile import StoreColumn, Varying, columns_of, path_without_ids, place_of
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference

CONTENT = "(content)"
"""Stands for the columns of a file."""
ROWS = "(rows)"
"""Stands for the rows that were added to a table and used up."""
NEAR = 0.2
"""The share of a value up to which changes in one direction count as additions."""
SLACK, SLACK_OF_SUMS = 0.5, 0.25
"""The shares by which an amount, and the amounts of a sum, may lie beyond the amounts of the clean runs."""
MOST_SUMS = 10_000
"""The most sums of named numbers that are tried."""
_number = re.compile(r"-?\d+(?:\.\d+)?")

ValueKind = Literal["adds", "sets", "unsure"]


@dataclass(frozen=True)
class ValuePlace:
    """A value that varies. `key` is "" for a row that was added since the reset: its key can be the store's. For an added file
    it is the file's path without ids."""

    store: str
    table: str
    key: str
    column: str

    def holds(self, row: RowDifference) -> bool:
        """Return whether a row is the value's."""
        return (row.store, row.table) == (self.store, self.table) and self.key in ("", row.key, path_without_ids(row.key))

    @property
    def store_column(self) -> StoreColumn:
        return self.store, self.table or self.key, self.column

    @property
    def name(self) -> str:
        return ".".join(filter(None, (self.store, self.table or self.key, self.column if self.column != CONTENT else "")))


@dataclass(frozen=True)
class ValueChange:
    """A change of a value between two readings.

    calls       numbers of the calls that were in flight
    identities  of these calls, in the same order
    numbers     what their arguments and answers name
    born        whether the row, or the object in JSON, had no such value: this is no change, and says what amounts there are
    """

    before: Cell
    after: Cell
    calls: tuple[int, ...]
    identities: tuple[str, ...]
    numbers: frozenset[float]
    born: bool = False

    @property
    def made_by(self) -> Iterable[tuple[int, str]]:
        """The calls that were in flight, each with its identity."""
        return zip(self.calls, self.identities, strict=True)

    @property
    def amount(self) -> float | None:
        """The number by which the value changed; None for a text that is no number."""
        before, after = self.ends
        return None if before is None or after is None else after - before

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The number before and after."""
        return 0.0 if self.before is None else number_of(self.before), number_of(self.after)

    @property
    def value(self) -> float:
        """The number after the change."""
        return self.ends[1] or 0.0


ValueChanges = Mapping[ValuePlace, Sequence[ValueChange]]


def value_changes(course: AgentCourse, varying: Varying) -> ValueChanges:
    """Return the changes of the values that vary, in their order, and those of rows in tables that are gone at the end: what
    used such a row up can vary. A row that comes or goes is no change of a value."""
    changes = defaultdict[ValuePlace, list[ValueChange]](list)
    calls = {call.number: (call, same) for call, same in zip(course.calls, course.identities, strict=True)}
    added = set[tuple[str, str, str]]()
    gone = _used_up(course, varying)
    for reading in course.readings:
        if reading.other:
            continue
        numbers = [number for number in reading.calls if number in calls and calls[number][0].passed_on is not None]
        texts = [
            course.texts.get(digest or "", "") for at in numbers for digest in (calls[at][0].arguments, calls[at][0].answer)
        ]
        named = frozenset(_numbers_in(texts))
        for row in reading.changed:
            place = row.store, row.table, row.key
            if row.after is None:
                added.discard(place)
                continue
            if born := row.before is None:
                added.add(place)
            identities = tuple(calls[number][1] for number in numbers)
            if born and place in gone:
                where = ValuePlace(row.store, row.table, "", ROWS)
                changes[where].append(ValueChange("", "a row\n", tuple(numbers), identities, named))
            for column, before, after in _cells(row, row.before or {}, row.after):
                name = "digest" if column == CONTENT else column
                if place not in gone and not varying.has(place, name, is_added=place in added):
                    continue
                key = row.key if place not in added else "" if row.table else path_without_ids(row.key)
                for part in changed_parts(column, before, after):
                    where = ValuePlace(row.store, row.table, key, part.name)
                    is_born = born or part.is_new
                    changes[where].append(ValueChange(part.before, part.after, tuple(numbers), identities, named, is_born))
    return changes


def _used_up(course: AgentCourse, varying: Varying) -> set[RowPlace]:
    """Return the rows of tables that are gone at the end, and went when a value changed that varies: an order of what was in a
    cart."""
    gone = dict[RowPlace, bool]()
    for reading in course.readings:
        cells = ((row, name) for row in reading.changed for name in row.after or ())
        varies = any(varying.has(place_of(row), name, is_added=row.before is None) for row, name in cells)
        gone |= {place_of(row): row.after is None and varies for row in reading.changed if row.table}
    return {place for place, is_gone in gone.items() if is_gone}


def _cells(row: RowDifference, before: Row, after: Row) -> Iterator[tuple[str, Cell, Cell]]:
    """Yield the values of a row that changed: column, former and present value. The content of a file is one value."""
    if row.table or before.get("kind") != "file":
        changed = (name for name in columns_of(row) if before.get(name) != after.get(name) and row.table != SEQUENCES)
        yield from ((name, before.get(name), after.get(name)) for name in changed)
    elif before.get("digest") != after.get("digest"):
        column = next(name for name in ("appended", "text", "size") if name in after)
        yield CONTENT, before.get(column, "" if column == "appended" else None), after.get(column)


def _numbers_in(texts: Iterable[str]) -> Iterator[float]:
    """Yield the numbers in these texts. A sum can be written in whole units and be kept in hundredths."""
    for text in texts:
        for match in _number.finditer(text[:100_000]):
            value = float(match[0])
            yield from (value, value * 100, value / 100)


class ValueJudge:
    """Says of each value that varies how often it was changed in a cell, beside the clean runs.

    Args:
        clean: The changes of the clean runs, each run's apart.
        reference: Those of the run with which cells are compared.
        counts: How often the clean run made each call, by its identity.
    """

    def __init__(self, clean: Sequence[ValueChanges], reference: ValueChanges, counts: Counter[str]):
        self._reference, self._counts = _real_changes(reference), counts
        self._clean = defaultdict[ValuePlace, list[ValueChange]](list)
        self._born = defaultdict[ValuePlace, list[ValueChange]](list)
        for changes in clean:
            for place, made in changes.items():
                self._clean[place] += (change for change in made if not change.born)
                self._born[place] += (change for change in made if change.born)

    def judgements(self, changes: ValueChanges, twice: frozenset[int]) -> Iterator[tuple[ValuePlace, int, int, bool]]:
        """Yield each value that was changed another number of times than in the clean run: its place, how often it was changed
        here and there, and whether this is sure.

        Args:
            changes: Those of the cell.
            twice: The numbers of calls that were delivered twice.
        """
        changes = _real_changes(changes)
        for place in dict.fromkeys((*self._reference, *changes)):
            made, normal = changes.get(place, ()), len(self._reference.get(place, ()))
            if not made:
                yield place, 0, normal, True
                continue
            kind = self._kind(place, made)
            if kind == "sets":
                continue
            low, high = self._times_in_all(place, made, twice)
            if low > normal or high < normal:
                yield place, low if low > normal else high, normal, kind == "adds"
            elif low != high:
                yield place, high, normal, False
            elif kind == "adds" and self._by_others(place, made):
                yield from ((place, normal + 1, normal, True), (place, normal - 1, normal, True))

    def makers(self, place: ValuePlace, changes: ValueChanges) -> set[str]:
        """Return the identities of the calls that change a value in the clean run, or if none does so, in these changes."""
        return {same for change in self._reference.get(place) or changes.get(place, ()) for same in change.identities}

    def sums(self, changes: ValueChanges) -> dict[ValuePlace, float]:
        """Return the values to which calls add, as these changes and those of the clean runs show, with the number by which
        each change adds: 1, or 0 for lines and items, or else 2."""
        known = self._reference | _real_changes(changes)
        return {place: _step(place, made) for place, made in known.items() if self._kind(place, made) == "adds"}

    def _kind(self, place: ValuePlace, made: Sequence[ValueChange]) -> ValueKind:
        """Return whether the changes of a value add to it, or set it anew."""
        clean, later = self._clean.get(place, ()), made[1:]
        if not clean:  # it adds to what it was when its row was added
            clean, later = self._born.get(place, ()), made
        amounts, others = [change.amount for change in clean], [self._amount_by_one_call(place, change) for change in made]
        if None in amounts or None in others:
            return "adds" if all(_is_appended(change) for change in (*clean, *made)) else "sets"
        if any(is_time(change.value) for change in (*clean, *made)):
            return "sets"
        every = (*clean, *made)
        if all(abs(change.amount or 0) in change.numbers or self._times_named(place, change) for change in every):
            return "adds"
        if all(change.value in change.numbers for change in every):
            return "sets"
        if not clean:
            return "unsure"
        adds = _fits(
            [amount for amount in others if amount is not None], [amount for amount in amounts if amount is not None], SLACK
        )
        slack = 0 if any(map(_is_near, clean)) else SLACK_OF_SUMS  # else the usual amount would lead far from the usual value
        sets = _fits([change.value for change in later], [change.value for change in clean], slack, signed=False)
        if adds and (not sets or all(_is_near(change) for change in every)):
            return "adds"
        return "sets" if sets and not adds else "unsure"

    def _times_in_all(self, place: ValuePlace, made: Sequence[ValueChange], twice: frozenset[int]) -> tuple[int, int]:
        """Return how often at least, and at most, an effect is in these changes. A call that was in flight at several of them
        made one of them."""
        makers = self.makers(place, {})
        flights = Counter(flight for change in made for flight in change.made_by if flight[1] in makers)
        calls = Counter(same for _, same in flights)
        unsure = twice | {number for (number, same), times in flights.items() if times > 1 or calls[same] > self._counts[same]}
        ranges = [self._times(place, change, twice, unsure) for change in made]
        most = max(len(made), len(flights) + sum(number in twice for number, _ in flights))
        return min(most, sum(few for few, _ in ranges)), min(most, sum(many for _, many in ranges))

    def _times(self, place: ValuePlace, change: ValueChange, twice: frozenset[int], unsure: frozenset[int]) -> tuple[int, int]:
        """Return how often at least, and at most, an effect is in one change. Calls that are `unsure` made it or did not."""
        here = self._makers_in(place, change)
        most = max(1, here.total() + sum(number in twice for number in change.calls))
        if most == 1 or not unsure & {*change.calls}:
            return most, most
        fitting = self._times_named(place, change)
        fitting = fitting or [times for times in range(1, most + 1) if self._fits_times(place, change, times)]
        return (fitting[0], fitting[-1]) if fitting else (1, most)

    def _times_named(self, place: ValuePlace, change: ValueChange) -> list[int]:
        """Return how many of the numbers that its calls name can make up a change, at most two for each call; nothing if the
        changes of the clean run are no such numbers."""
        known = self._reference.get(place, ())
        if change.amount is None or not known or not all(abs(each.amount or 0) in each.numbers for each in known):
            return []
        whole, sums, fitting = abs(change.amount), {0.0}, list[int]()
        named = [number for number in change.numbers if 0 < number <= whole]
        for times in range(1, 2 * self._makers_in(place, change).total() + 1):
            if len(sums) * len(named) > MOST_SUMS:
                return []
            sums = {round(former + number, 6) for former in sums for number in named if former + number <= whole + 1e-6}
            fitting += [times] if round(whole, 6) in sums else []
        return fitting

    def _by_others(self, place: ValuePlace, made: Sequence[ValueChange]) -> bool:
        """Return whether one call changed a value more often than in the clean run, and another less often."""
        here, there = (
            sum((self._makers_in(place, change) for change in each), Counter[str]()) for each in (made, self._reference[place])
        )
        return here.total() == there.total() == len(self._reference[place]) and here != there

    def _makers_in(self, place: ValuePlace, change: ValueChange) -> Counter[str]:
        """Count the calls in flight at a change that change this value in the clean run."""
        makers = self.makers(place, {})
        return Counter(same for same in change.identities if same in makers)

    def _amount_by_one_call(self, place: ValuePlace, change: ValueChange) -> float | None:
        """Return the amount that one call changed. If several calls could make the change, the amount is divided by the first
        number of calls for which it fits the clean runs."""
        amount = change.amount
        counts = range(1, 1 + max(1, self._makers_in(place, change).total()))
        return amount and next((amount / calls for calls in counts if self._fits_times(place, change, calls)), amount)

    def _fits_times(self, place: ValuePlace, change: ValueChange, times: int) -> bool:
        clean = self._clean.get(place, ())
        if change.amount is not None:
            amounts = [known.amount for known in clean if known.amount is not None]
            return _fits([change.amount / times], amounts, SLACK_OF_SUMS)
        sizes = [_size(known) for known in clean]
        return _fits([_size(change) / times], sizes, SLACK_OF_SUMS)


def _fits(values: Sequence[float], known: Sequence[float], slack: float, *, signed: bool = True) -> bool:
    """Return whether values lie where known values lie: between them, or beyond by no more than they are apart, or than this
    share of the greatest. If `signed`, all have one sign."""
    if not known or not values:
        return False
    low, high = min(known), max(known)
    beyond = max(high - low, slack * max(abs(low), abs(high)))
    if signed and not (all(value > 0 for value in (*known, *values)) or all(value < 0 for value in (*known, *values))):
        return False
    return all(low - beyond <= value <= high + beyond for value in values)


def _step(place: ValuePlace, made: Sequence[ValueChange]) -> float:
    """Return by how much each change of a value adds to it: 1, or 0 for lines of a file and items of JSON, or else 2."""
    if all(change.amount == 1 for change in made):
        return 1.0
    rows = all(change.amount is None and (not place.table or json_growth(change.before, change.after)) for change in made)
    return 0.0 if rows else 2.0


def _is_appended(change: ValueChange) -> bool:
    """Return whether a change of a text put something at its end, or gave further items or names to the JSON in it."""
    part = _added_part(change)
    is_text = isinstance(change.after, str) and not change.after.startswith("(digest)")
    return isinstance(part, str) or json_growth(change.before, change.after) > 0 if is_text else bool(part)


def _size(change: ValueChange) -> float:
    """Return the size of what was appended to a text: its items or lines, or its characters if it has neither."""
    part = _added_part(change)
    return json_growth(change.before, change.after) or (
        (part.count("\n") or len(part)) if isinstance(part, str) else float(part or 0)
    )


def _added_part(change: ValueChange) -> Cell:
    return added_part("" if change.before is None and isinstance(change.after, str) else change.before, change.after)


def _is_near(change: ValueChange) -> bool:
    return abs(change.amount or 0) <= NEAR * abs(change.ends[0] or 0.0)


def _real_changes(changes: ValueChanges) -> dict[ValuePlace, Sequence[ValueChange]]:
    """Return the changes without those that only say that a row was added."""
    return {place: kept for place, made in changes.items() if (kept := [change for change in made if not change.born])}
