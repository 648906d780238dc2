"""Judges values that vary between clean runs.

Their amounts cannot be compared, so their changes are counted: a debit of another amount is a debit again. A value that is
set again is no further effect. If it is not clear whether a value is added to or set, there is no verdict.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.probe.run.agent_run import AgentRun
from bench.probe.run.cell_parts import changed_parts, json_growth
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.times import added_part, is_time, number_of
from bench.probe.run.volatile import StoreColumn, Varying, columns_of, path_without_ids, place_of
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference

FILE_CONTENT = "(content)"
"""The name that replaces the columns of a file in a place: its content is one value."""
USED_UP_ROWS = "(rows)"
"""The name of the value that counts the rows which were added to a table and used up, such as the rows of a cart."""
NEAR_SHARE = 0.2
"""The largest share of a value by which it changes at an addition, if it could have been set instead."""
AMOUNT_SLACK_SHARE, SUM_SLACK_SHARE = 0.5, 0.25
"""How far an amount, and a sum of amounts, may lie beyond the amounts of the clean runs, as a share of the largest."""
MAX_SUMS = 10_000
"""The most sums of named numbers that are tried."""
_number = re.compile(r"-?\d+(?:\.\d+)?")

ValueKind = Literal["adds", "sets", "unsure"]


@dataclass(frozen=True)
class ValuePlace:
    """The place of a value that varies. `key` is "" for a row that was added since the reset, since the store may generate its
    key; for an added file it is the path without ids."""

    store: str
    table: str
    key: str
    column: str

    def holds(self, row: RowDifference) -> bool:
        """Return whether a row contains the value."""
        return (row.store, row.table) == (self.store, self.table) and self.key in ("", row.key, path_without_ids(row.key))

    @property
    def store_column(self) -> StoreColumn:
        """The store, the table or file, and the column of the value."""
        return self.store, self.table or self.key, self.column

    @property
    def name(self) -> str:
        """The value in words."""
        return ".".join(filter(None, (self.store, self.table or self.key, self.column if self.column != FILE_CONTENT else "")))


@dataclass(frozen=True)
class ValueChange:
    """A change of a value between two readings.

    calls       the numbers of the calls that were in flight
    identities  their identities, in the same order
    numbers     the numbers in their arguments and responses
    born        whether the row, or the object in JSON, had no such value before. This is no change of a value, but shows which
    amounts are possible
    """

    before: Cell
    after: Cell
    calls: tuple[int, ...]
    identities: tuple[str, ...]
    numbers: frozenset[float]
    born: bool = False

    @property
    def calls_and_identities(self) -> Iterable[tuple[int, str]]:
        """The calls that were in flight, each with its identity."""
        return zip(self.calls, self.identities, strict=True)

    @property
    def amount(self) -> float | None:
        """The number by which the value changed; None if it is no number."""
        before, after = self.numbers_before_and_after
        return None if before is None or after is None else after - before

    @property
    def numbers_before_and_after(self) -> tuple[float | None, float | None]:
        """The number before and after the change: 0 if there was no value before, None for a value that is no number."""
        return 0.0 if self.before is None else number_of(self.before), number_of(self.after)

    @property
    def value(self) -> float:
        """The number after the change; 0 if it is no number."""
        return self.numbers_before_and_after[1] or 0.0


ValueChanges = Mapping[ValuePlace, Sequence[ValueChange]]


def value_changes(agent_run: AgentRun, varying: Varying) -> ValueChanges:
    """Return the changes of the values that vary, in their order.

    Rows of tables that are gone at the end count too, since the value that used them up can vary. A row that is added or
    removed is no change of a value.
    """
    changes = defaultdict[ValuePlace, list[ValueChange]](list)
    calls = {call.number: (call, identity) for call, identity in zip(agent_run.calls, agent_run.identities, strict=True)}
    added_places = set[RowPlace]()
    used_up = _used_up_rows(agent_run, varying)
    for reading in agent_run.readings:
        if reading.other:
            continue
        in_flight = [calls[number] for number in reading.calls if number in calls and calls[number][0].passed_on is not None]
        numbers = tuple(call.number for call, _ in in_flight)
        identities = tuple(identity for _, identity in in_flight)
        digests = [digest for call, _ in in_flight for digest in (call.arguments, call.answer) if digest]
        named_numbers = frozenset(_numbers_in(agent_run.texts.get(digest, "") for digest in digests))
        for row in reading.changed:
            place = place_of(row)
            if row.after is None:
                added_places.discard(place)
                continue
            if is_added := row.before is None:
                added_places.add(place)
            if is_added and place in used_up:
                value_place = ValuePlace(row.store, row.table, "", USED_UP_ROWS)
                changes[value_place].append(ValueChange("", "a row\n", numbers, identities, named_numbers))
            for column, before, after in _changed_cells(row, row.before or {}, row.after):
                name = "digest" if column == FILE_CONTENT else column
                if place not in used_up and not varying.has(place, name, is_added=place in added_places):
                    continue
                key = _key_of_added(row) if place in added_places else row.key
                for part in changed_parts(column, before, after):
                    value_place = ValuePlace(row.store, row.table, key, part.name)
                    is_born = is_added or part.is_new
                    change = ValueChange(part.before, part.after, numbers, identities, named_numbers, is_born)
                    changes[value_place].append(change)
    return changes


def _key_of_added(row: RowDifference) -> str:
    """Return the key in the place of a value of an added row (`ValuePlace`)."""
    return "" if row.table else path_without_ids(row.key)


def _used_up_rows(agent_run: AgentRun, varying: Varying) -> set[RowPlace]:
    """Return the rows that were removed when a value that varies changed, such as a cart's rows that an order used up."""
    is_used_up = dict[RowPlace, bool]()
    for reading in agent_run.readings:
        cells = ((row, name) for row in reading.changed for name in row.after or ())
        varies = any(varying.has(place_of(row), name, is_added=row.before is None) for row, name in cells)
        is_used_up |= {place_of(row): row.after is None and varies for row in reading.changed if row.table}
    return {place for place in is_used_up if is_used_up[place]}


def _changed_cells(row: RowDifference, before: Row, after: Row) -> Iterator[tuple[str, Cell, Cell]]:
    """Yield the changed values of a row: column, value before, value after. The content of a file is one value."""
    if row.table or before.get("kind") != "file":
        changed = (name for name in columns_of(row) if before.get(name) != after.get(name) and row.table != SEQUENCES)
        yield from ((name, before.get(name), after.get(name)) for name in changed)
    elif before.get("digest") != after.get("digest"):
        column = next(name for name in ("appended", "text", "size") if name in after)
        yield FILE_CONTENT, before.get(column, "" if column == "appended" else None), after.get(column)


def _numbers_in(texts: Iterable[str]) -> Iterator[float]:
    """Yield the numbers in these texts, and each number times 100 and divided by 100: a text may say dollars where a store has
    cents."""
    for text in texts:
        for match in _number.finditer(text[:100_000]):
            value = float(match[0])
            yield from (value, value * 100, value / 100)


class ValueJudge:
    """Judges how often each value that varies was changed in a cell, compared with the clean runs.

    Args:
        clean: The changes of each clean run.
        reference: The changes of the run with which cells are compared.
        counts: How often the clean run made each call, by its identity.
    """

    def __init__(self, clean: Sequence[ValueChanges], reference: ValueChanges, counts: Counter[str]):
        self._reference, self._counts = _real_changes(reference), counts
        self._clean = defaultdict[ValuePlace, list[ValueChange]](list)
        self._born = defaultdict[ValuePlace, list[ValueChange]](list)
        for changes in clean:
            for place, value_changes in changes.items():
                self._clean[place] += (change for change in value_changes if not change.born)
                self._born[place] += (change for change in value_changes if change.born)

    def judgements(self, changes: ValueChanges, twice: frozenset[int]) -> Iterator[tuple[ValuePlace, int, int, bool]]:
        """Yield each value that was changed more or less often than in the clean run: its place, its number of changes in the
        cell and in the clean run, and whether this is certain.

        Args:
            changes: The changes of the cell.
            twice: The numbers of calls that were delivered twice.
        """
        changes = _real_changes(changes)
        for place in dict.fromkeys((*self._reference, *changes)):
            value_changes, clean_times = changes.get(place, ()), len(self._reference.get(place, ()))
            if not value_changes:
                yield place, 0, clean_times, True
                continue
            kind = self._kind(place, value_changes)
            if kind == "sets":  # a value that is set again is no further effect
                continue
            fewest, most = self._count_range(place, value_changes, twice)
            if fewest > clean_times:
                yield place, fewest, clean_times, kind == "adds"
            elif most < clean_times:
                yield place, most, clean_times, kind == "adds"
            elif fewest != most:  # the clean run's number is possible, and another number too
                yield place, most, clean_times, False
            elif kind == "adds" and self._is_shifted_between_calls(place, value_changes):
                yield from ((place, clean_times + 1, clean_times, True), (place, clean_times - 1, clean_times, True))

    def makers(self, place: ValuePlace, changes: ValueChanges) -> set[str]:
        """Return the identities of the calls that change a value in the clean run; if no call does, those of the calls in
        flight at these changes."""
        return {identity for change in self._reference.get(place) or changes.get(place, ()) for identity in change.identities}

    def sums(self, changes: ValueChanges) -> dict[ValuePlace, float]:
        """Return the values to which calls add, according to these changes and the clean runs, each with its `_step`."""
        all_changes = self._reference | _real_changes(changes)
        return {
            place: _step(place, value_changes)
            for place, value_changes in all_changes.items()
            if self._kind(place, value_changes) == "adds"
        }

    def _kind(self, place: ValuePlace, value_changes: Sequence[ValueChange]) -> ValueKind:
        """Return whether changes add to a value, set it, or cannot be told apart."""
        clean, later_changes = self._clean.get(place, ()), value_changes[1:]
        if not clean:  # no clean run changes the value after its row was added: compare with the values of added rows
            clean, later_changes = self._born.get(place, ()), value_changes
        clean_amounts = [change.amount for change in clean]
        cell_amounts = [self._amount_by_one_call(place, change) for change in value_changes]
        if None in clean_amounts or None in cell_amounts:  # a text or JSON, and no number
            return "adds" if all(_is_appended(change) for change in (*clean, *value_changes)) else "sets"
        if any(is_time(change.value) for change in (*clean, *value_changes)):
            return "sets"
        all_changes = (*clean, *value_changes)
        # the calls name each amount, or numbers that add up to it: they add; they name each new value: they set
        if all(abs(change.amount or 0) in change.numbers or self._possible_counts(place, change) for change in all_changes):
            return "adds"
        if all(change.value in change.numbers for change in all_changes):
            return "sets"
        if not clean:
            return "unsure"
        clean_numbers, cell_numbers = ([amount or 0.0 for amount in amounts] for amounts in (clean_amounts, cell_amounts))
        adds = _fits(cell_numbers, clean_numbers, AMOUNT_SLACK_SHARE)
        slack = 0 if any(map(_is_near, clean)) else SUM_SLACK_SHARE  # else the usual amount would lead far from the usual value
        sets = _fits([change.value for change in later_changes], [change.value for change in clean], slack, signed=False)
        if adds and (not sets or all(_is_near(change) for change in all_changes)):
            return "adds"
        return "sets" if sets and not adds else "unsure"

    def _count_range(self, place: ValuePlace, value_changes: Sequence[ValueChange], twice: frozenset[int]) -> tuple[int, int]:
        """Return how often an effect is in these changes, at least and at most. A call that was in flight at several changes
        made only one of them."""
        makers = self.makers(place, {})
        calls_of_changes = [call for change in value_changes for call in change.calls_and_identities]
        change_counts = Counter((number, identity) for number, identity in calls_of_changes if identity in makers)
        call_counts = Counter(identity for _, identity in change_counts)
        # the calls of which it is unknown at which change, or whether, they changed the value
        unsure = twice | {
            number
            for (number, identity), changes in change_counts.items()
            if changes > 1 or call_counts[identity] > self._counts[identity]
        }
        ranges = [self._count_range_of_change(place, change, twice, unsure) for change in value_changes]
        most = max(len(value_changes), len(change_counts) + sum(number in twice for number, _ in change_counts))
        return min(most, sum(fewest for fewest, _ in ranges)), min(most, sum(most_in_change for _, most_in_change in ranges))

    def _count_range_of_change(
        self, place: ValuePlace, change: ValueChange, twice: frozenset[int], unsure: frozenset[int]
    ) -> tuple[int, int]:
        """Return how often an effect is in one change, at least and at most. Only for the calls `unsure` it is unknown whether
        they made the change."""
        makers = self._makers_in(place, change)
        most = max(1, makers.total() + sum(number in twice for number in change.calls))
        if most == 1 or not unsure & {*change.calls}:
            return most, most
        fitting = self._possible_counts(place, change)
        fitting = fitting or [times for times in range(1, most + 1) if self._fits_times(place, change, times)]
        return (fitting[0], fitting[-1]) if fitting else (1, most)

    def _possible_counts(self, place: ValuePlace, change: ValueChange) -> list[int]:
        """Return the possible numbers of times that the calls changed a value: each count of numbers from the calls' texts, at
        most two for each call, that add up to the change. [] if the clean changes are not numbers in these texts."""
        clean_changes = self._reference.get(place, ())
        if (
            change.amount is None
            or not clean_changes
            or not all(abs(clean_change.amount or 0) in clean_change.numbers for clean_change in clean_changes)
        ):
            return []
        target, sums, fitting = abs(change.amount), {0.0}, list[int]()
        candidates = [number for number in change.numbers if 0 < number <= target]
        for times in range(1, 2 * self._makers_in(place, change).total() + 1):
            if len(sums) * len(candidates) > MAX_SUMS:
                return []  # too many sums to try
            longer_sums = (round(partial_sum + number, 6) for partial_sum in sums for number in candidates)
            sums = {longer_sum for longer_sum in longer_sums if longer_sum <= target + 1e-6}
            fitting += [times] if round(target, 6) in sums else []
        return fitting

    def _is_shifted_between_calls(self, place: ValuePlace, value_changes: Sequence[ValueChange]) -> bool:
        """Return whether one call changed a value more often than in the clean run, and another call less often. This is only
        known if a single call was in flight at each change."""
        clean_changes = self._reference[place]
        cell_makers = sum((self._makers_in(place, change) for change in value_changes), Counter[str]())
        clean_makers = sum((self._makers_in(place, change) for change in clean_changes), Counter[str]())
        return cell_makers.total() == clean_makers.total() == len(clean_changes) and cell_makers != clean_makers

    def _makers_in(self, place: ValuePlace, change: ValueChange) -> Counter[str]:
        """Count the calls that were in flight at a change and change this value in the clean run, by their identities."""
        makers = self.makers(place, {})
        return Counter(identity for identity in change.identities if identity in makers)

    def _amount_by_one_call(self, place: ValuePlace, change: ValueChange) -> float | None:
        """Return the amount by which a single call changed a value. If several calls may have made the change, the amount is
        divided by the smallest number of calls for which it fits the clean runs."""
        amount = change.amount
        if not amount:  # 0, or None for a value that is no number
            return amount
        counts = range(1, 1 + max(1, self._makers_in(place, change).total()))
        return next((amount / calls for calls in counts if self._fits_times(place, change, calls)), amount)

    def _fits_times(self, place: ValuePlace, change: ValueChange, times: int) -> bool:
        """Return whether a change fits the clean runs if it consists of this many equal changes."""
        clean = self._clean.get(place, ())
        if change.amount is not None:
            amounts = [clean_change.amount for clean_change in clean if clean_change.amount is not None]
            return _fits([change.amount / times], amounts, SUM_SLACK_SHARE)
        return _fits([_size(change) / times], list(map(_size, clean)), SUM_SLACK_SHARE)


def _fits(values: Sequence[float], clean_values: Sequence[float], slack: float, *, signed: bool = True) -> bool:
    """Return whether values are in the range of the clean values, widened on both sides by the range's width, or by a share of
    the largest clean value if this is more.

    Args:
        values: The numbers that are checked. Without any, the result is False.
        clean_values: The numbers of the clean runs. Without any, the result is False.
        slack: The share of the largest clean value.
        signed: Whether all values must have the same sign.
    """
    if not clean_values or not values:
        return False
    low, high = min(clean_values), max(clean_values)
    margin = max(high - low, slack * max(abs(low), abs(high)))
    if signed and not (min(low, *values) > 0 or max(high, *values) < 0):
        return False
    return all(low - margin <= value <= high + margin for value in values)


def _step(place: ValuePlace, value_changes: Sequence[ValueChange]) -> float:
    """Return the kind of addition to a value as a number: 1 for a counter that goes up by 1, 0 for lines of a file and items of
    JSON, 2 for all else."""
    if all(change.amount == 1 for change in value_changes):
        return 1.0
    is_line = [
        change.amount is None and (not place.table or json_growth(change.before, change.after)) for change in value_changes
    ]
    return 0.0 if all(is_line) else 2.0


def _is_appended(change: ValueChange) -> bool:
    """Return whether a change appended text, or added items or members to JSON."""
    part = _added_part(change)
    if isinstance(change.after, str) and not change.after.startswith("(digest)"):
        return isinstance(part, str) or json_growth(change.before, change.after) > 0
    return bool(part)


def _size(change: ValueChange) -> float:
    """Return how much a change appended: the number of JSON items, else of lines of text, else of characters; to a value that
    is kept as its digest, the number of bytes."""
    part = _added_part(change)
    return json_growth(change.before, change.after) or (
        (part.count("\n") or len(part)) if isinstance(part, str) else float(part or 0)
    )


def _added_part(change: ValueChange) -> Cell:
    return added_part("" if change.before is None and isinstance(change.after, str) else change.before, change.after)


def _is_near(change: ValueChange) -> bool:
    """Return whether a change is small compared with the value before it."""
    return abs(change.amount or 0) <= NEAR_SHARE * abs(change.numbers_before_and_after[0] or 0.0)


def _real_changes(changes: ValueChanges) -> dict[ValuePlace, Sequence[ValueChange]]:
    """Return the changes without the values of rows that were added."""
    real_changes = {place: [change for change in made if not change.born] for place, made in changes.items()}
    return {place: made for place, made in real_changes.items() if made}
