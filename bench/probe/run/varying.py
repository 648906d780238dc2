"""Judge values that vary between clean runs. Their amounts say nothing, so their changes are counted: a debit of another amount
is a debit again. A value that is set again is no further effect, and a value of which neither is sure gives no verdict."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from bench.probe.run.course import AgentCourse
from bench.probe.run.times import added_part
from bench.probe.run.volatile import Varying, columns_of
from bench.record.probe.rows import SEQUENCES, Cell, Row, RowDifference

CONTENT = "(content)"
"""Stands for the columns of a file."""
NEAR = 0.2
"""The share of a value up to which changes in one direction count as additions."""
SLACK, SLACK_OF_SUMS = 0.5, 0.1
"""The shares by which an amount, and the amounts of a sum, may lie beyond the amounts of the clean runs."""
TIME = (1.5e9, 2.3e9)
"""Seconds since 1970 that a clock can show, from 2017 to 2042."""
_number = re.compile(r"-?\d+(?:\.\d+)?")
_decimal = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")

ValueKind = Literal["adds", "sets", "unsure"]


@dataclass(frozen=True)
class ValuePlace:
    """A value that varies. `key` is "" for a row that was added since the reset: its key can be the store's."""

    store: str
    table: str
    key: str
    column: str

    def holds(self, row: RowDifference) -> bool:
        """Return whether a row is the value's."""
        return (row.store, row.table) == (self.store, self.table) and self.key in ("", row.key)

    @property
    def name(self) -> str:
        return ".".join(filter(None, (self.store, self.table or self.key, self.column if self.column != CONTENT else "")))


@dataclass(frozen=True)
class ValueChange:
    """A change of a value between two readings.

    calls       numbers of the calls that were in flight
    identities  of these calls, in the same order
    numbers     what their arguments and answers name
    born        whether the row with the value was added: this is no change, and says what amounts there are
    """

    before: Cell
    after: Cell
    calls: tuple[int, ...]
    identities: tuple[str, ...]
    numbers: frozenset[float]
    born: bool = False

    @property
    def amount(self) -> float | None:
        """The number by which the value changed; None for a text that is no number and no JSON in which one number changed."""
        before, after = self.ends
        return None if before is None or after is None else after - before

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The number before and after."""
        inside = list(_numbers_apart(_container(self.before), _container(self.after)))
        if len(inside) == 1:
            return inside[0]
        return 0.0 if self.before is None else _number_of(self.before), _number_of(self.after)

    @property
    def value(self) -> float:
        """The number after the change."""
        return self.ends[1] or 0.0


ValueChanges = Mapping[ValuePlace, Sequence[ValueChange]]


def value_changes(course: AgentCourse, varying: Varying) -> ValueChanges:
    """Return the changes of the values that vary, in their order. A row that comes or goes is no change of a value."""
    changes = defaultdict[ValuePlace, list[ValueChange]](list)
    calls = {call.number: (call, same) for call, same in zip(course.calls, course.identities, strict=True)}
    added = set[tuple[str, str, str]]()
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
            for column, before, after in _cells(row, row.before or {}, row.after):
                if not varying.has(place, "digest" if column == CONTENT else column, is_added=place in added):
                    continue
                where = ValuePlace(row.store, row.table, "" if place in added else row.key, column)
                identities = tuple(calls[number][1] for number in numbers)
                changes[where].append(ValueChange(before, after, tuple(numbers), identities, named, born))
    return changes


def _cells(row: RowDifference, before: Row, after: Row) -> Iterator[tuple[str, Cell, Cell]]:
    """Yield the values of a row that changed: column, former and present value. The content of a file is one value."""
    if row.table or before.get("kind") != "file":
        changed = (name for name in columns_of(row) if before.get(name) != after.get(name) and row.table != SEQUENCES)
        yield from ((name, before.get(name), after.get(name)) for name in changed)
    elif before.get("digest") != after.get("digest"):
        column = "appended" if "appended" in after else "text"
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
        self._reference, self._counts = _changed(reference), counts
        self._clean = defaultdict[ValuePlace, list[ValueChange]](list)
        self._born = defaultdict[ValuePlace, list[ValueChange]](list)
        for changes in clean:
            for place, made in changes.items():
                self._clean[place] += (change for change in made if not change.born)
                self._born[place] += (change for change in made if change.born)

    def judged(self, changes: ValueChanges, twice: frozenset[int]) -> Iterator[tuple[ValuePlace, int, int, bool]]:
        """Yield each value that was changed another number of times than in the clean run: its place, how often it was changed
        here and there, and whether this is sure.

        Args:
            changes: Those of the cell.
            twice: The numbers of calls that were delivered twice.
        """
        changes = _changed(changes)
        for place in dict.fromkeys((*self._reference, *changes)):
            made, normal = changes.get(place, ()), len(self._reference.get(place, ()))
            if not made:
                yield place, 0, normal, True
                continue
            kind = self._kind(place, made)
            if kind == "sets":
                continue
            ranges = [self._times(place, change, twice) for change in made]
            low, high = sum(few for few, _ in ranges), sum(many for _, many in ranges)
            if low > normal or high < normal:
                yield place, low if low > normal else high, normal, kind == "adds"
            elif low != high:
                yield place, high, normal, False

    def _kind(self, place: ValuePlace, made: Sequence[ValueChange]) -> ValueKind:
        """Return whether the changes of a value add to it, or set it anew."""
        clean, later = self._clean.get(place, ()), made[1:]
        if not clean:  # it adds to what it was when its row was added
            clean, later = self._born.get(place, ()), made
        amounts, others = [change.amount for change in clean], [change.amount for change in made]
        if None in amounts or None in others:
            return "adds" if all(_appended(change) for change in (*clean, *made)) else "sets"
        if any(_is_time(change.value) for change in (*clean, *made)):
            return "sets"
        every = (*clean, *made)
        if all(abs(change.amount or 0) in change.numbers for change in every):
            return "adds"
        if all(change.value in change.numbers for change in every):
            return "sets"
        if not clean:
            return "unsure"
        adds = _fits(
            [amount for amount in others if amount is not None], [amount for amount in amounts if amount is not None], SLACK
        )
        sets = _fits([change.value for change in later], [change.value for change in clean], 0, signed=False)
        if adds and (not sets or all(_is_near(change) for change in every)):
            return "adds"
        return "sets" if sets and not adds else "unsure"

    def _times(self, place: ValuePlace, change: ValueChange, twice: frozenset[int]) -> tuple[int, int]:
        """Return how often at least, and at most, an effect is in one change."""
        makers = {same for known in self._reference.get(place, ()) for same in known.identities}
        here = Counter(same for same in change.identities if same in makers)
        most = max(1, here.total() + sum(number in twice for number in change.calls))
        if most == 1 or (not twice & {*change.calls} and all(here[same] <= self._counts[same] for same in here)):
            return most, most
        fitting = [times for times in range(1, most + 1) if self._fits_times(place, change, times)]
        return (fitting[0], fitting[-1]) if fitting else (1, most)

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


def _appended(change: ValueChange) -> bool:
    """Return whether a change of a text put something at its end, or gave further items or names to the JSON in it."""
    part = _added_part(change)
    is_text = isinstance(change.after, str) and not change.after.startswith("(digest)")
    return isinstance(part, str) or _json_growth(change) > 0 if is_text else bool(part)


def _size(change: ValueChange) -> float:
    """Return the size of what was appended to a text: its items or lines, or its characters if it has neither."""
    part = _added_part(change)
    return _json_growth(change) or ((part.count("\n") or len(part)) if isinstance(part, str) else float(part or 0))


def _added_part(change: ValueChange) -> Cell:
    return added_part("" if change.before is None and isinstance(change.after, str) else change.before, change.after)


def _json_growth(change: ValueChange) -> int:
    """Count the items and names that the JSON in a text has more than before."""
    return _grown(_container(change.before), _container(change.after))


def _container(value: Cell) -> Any:
    """Return the list or object that a text holds as JSON, else None."""
    with suppress(ValueError, RecursionError):
        return json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("[", "{") else None
    return None


def _grown(former: Any, later: Any) -> int:
    if isinstance(later, dict) and isinstance(former, dict | None):
        names = former or {}
        return sum(1 if name not in names else _grown(names[name], value) for name, value in later.items())
    if isinstance(later, list) and isinstance(former, list | None):
        items = former or []
        more = len(later) - len(items)
        return max(0, more) if items in (later[: len(items)], later[more:]) else 0
    return 0


def _is_time(value: float) -> bool:
    """Return whether a number is a time: seconds, or thousandths to billionths of a second, since 1970."""
    return any(TIME[0] <= value / unit <= TIME[1] for unit in (1, 1e3, 1e6, 1e9))


def _is_near(change: ValueChange) -> bool:
    return abs(change.amount or 0) <= NEAR * abs(change.ends[0] or 0.0)


def _number_of(value: Cell) -> float | None:
    """Return a number, also one that is kept as a text; None for another value."""
    if isinstance(value, str):
        return float(value) if _decimal.fullmatch(value) else None
    return None if isinstance(value, bool) else value


def _numbers_apart(former: Any, later: Any) -> Iterator[tuple[float, float]]:
    """Yield the numbers in which two values of JSON of one form differ, but for times."""
    if isinstance(former, dict) and isinstance(later, dict) and former.keys() == later.keys():
        for name in former:
            yield from _numbers_apart(former[name], later[name])
    elif isinstance(former, list) and isinstance(later, list) and len(former) == len(later):
        for early, late in zip(former, later, strict=True):
            yield from _numbers_apart(early, late)
    elif _is_number(former) and _is_number(later) and former != later and not _is_time(later):
        yield former, later


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _changed(changes: ValueChanges) -> ValueChanges:
    """Return the changes without those that only say that a row was added."""
    return {place: kept for place, made in changes.items() if (kept := [change for change in made if not change.born])}
