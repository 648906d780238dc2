"""Compare the end of a cell with the clean state, effect by effect."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bench.probe.points import point_of
from bench.probe.run.cell_parts import CellPart, states_of
from bench.probe.run.clean import Clean, CleanEffect
from bench.probe.run.course import AgentCourse
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.meanwhile import SteppedClean
from bench.probe.run.times import added_part, is_time, times_made
from bench.probe.run.varying import CONTENT, ValueChange, ValueChanges, ValuePlace, value_changes
from bench.probe.run.volatile import ChangedRows, StoreColumn, columns_of, key_columns, place_of
from bench.record.probe_events import CellFinding, Culprit, FindingKind, GatewayCall
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference

_Label = tuple[str, str, str]
"""Store, table and content of an added row: what stands for its key where another row refers to it."""


def is_by_tool(point: str | None) -> bool:
    """Return whether a call that is struck at this point reaches its tool twice: what the tool does then is its own doing."""
    return point is not None and point_of(point).by_tool


def is_done(call: GatewayCall) -> bool:
    return call.passed_on is not None and call.answered is not None and not call.failed


def times_done(course: AgentCourse) -> Counter[str]:
    """Count how often each call was done according to its server's answers. A call that was delivered twice was done twice."""
    times = Counter[str]()
    for call, identity, _ in course.own_calls():
        times[identity] += is_done(call) * (2 if is_by_tool(call.point) else 1)
    return times


@dataclass
class _Gathered:
    """The rows of one finding, while they are collected."""

    times: int
    rows: list[RowDifference]
    calls: set[int]


@dataclass(frozen=True)
class _Version:
    """An added row of the clean runs in the state in which an effect left it. The effect was the `at`-th to change the row."""

    row: RowDifference
    at: int
    effect: CleanEffect
    state: RowDifference


class CellComparison:
    """Compares the rows of a cell with the rows of the clean runs.

    An added row whose key the store made is known by its other columns, and a column that refers to such a key by the row that
    it refers to.
    """

    def __init__(self, clean: Clean, course: AgentCourse, point: str | None):
        self._step = SteppedClean.of(clean, [row for reading in course.readings if reading.other for row in reading.changed])
        self._clean = clean = self._step.clean
        self._course, self._point = course, point
        self._rows = course.rows
        self._steps, self._done = course.steps(), times_done(course)
        self._keys = _keys_made(self._rows) | _keys_made(clean.rows)
        self._made, self._clean_made = self._labels(self._rows), self._labels(clean.rows)
        self._versions = _versions(clean.effects)
        self._held = dict[tuple[FindingKind, str], _Gathered]()
        self._calls = {call.number: (call, same) for call, same in zip(course.calls, course.identities, strict=True)}
        self.unsure = list[str]()
        self._varied = defaultdict[str, set[StoreColumn]](set)
        """Effect -> the varying values that it changed more often."""
        self._changes: ValueChanges = {}
        self._sums = dict[ValuePlace, float]()
        """The varying values to which calls add, with the number by which each change adds (`ValueJudge.sums`)."""

    def findings(self) -> Iterator[CellFinding]:
        """Yield what differs for certain, and keep in `unsure` what may be another effect and may be none."""
        if self._course.readings and self._course.readings[-1].digest == self._clean.digest:
            return
        self._compare_added()
        self._compare_others()
        self._compare_varying()
        for (kind, effect), held in self._held.items():
            if kind == "doubled" and (trace := self._trace(effect, held.rows)):
                self.unsure.append(trace)
                continue
            is_tools = is_by_tool(self._point) and (kind != "lost" or point_of(self._point or "").before == "again")
            culprit: Culprit = "tool" if is_tools else "agent"
            yield CellFinding(kind, effect, held.times, tuple(held.rows), tuple(sorted(held.calls)), culprit)

    def _trace(self, effect: str, rows: Sequence[RowDifference]) -> str:
        """Return which counter or which row of an audit is all that stands again of a call's effect; "" if more does.

        A tool that does each key once can count the tries, or write a line on each. Then a number by one, or a new row, stands
        again, and the rest of the effect, which would add up as well, does not.
        """
        known = [each for each in self._clean.effects if each.name == effect]
        if len(known) != 1 or len(known[0].identities) != 1:
            return ""
        again = {column for column, _ in self._additions(rows) if column[:2] not in _tables_of_added(rows) or not column[2]}
        again |= self._varied[effect]
        makers = partial(self._clean.values.makers, changes=self._changes)
        varying = {place.store_column: by for place, by in self._sums.items() if makers(place) & known[0].identities}
        whole = dict(self._additions(known[0].rows)) | varying
        shared = {at for each in self._clean.effects if each is not known[0] for at, _ in self._additions(each.rows) if at[2]}
        files = {column[:2] for column in again if column[2] in (CONTENT, "text", "appended")}  # a new file is its text
        rest = [
            by for at, by in whole.items() if at not in again | shared and (*at[:2], "") not in again and at[:2] not in files
        ]
        if not again or any(whole.get(column) not in (0, 1) for column in again):
            return ""
        counts = all(whole[column] == 1 for column in again) and any(map(self._sets, known[0].rows))
        if not any(by != 1 for by in rest) and not counts:
            return ""
        store, table, column = min(again)
        what = f"a row of {store}.{table}" if not column else f"{column} of {store}.{table}"
        return f"{what} stands again and the rest of what {effect} does stands once"

    def _sets(self, row: RowDifference) -> bool:
        """Return whether a text of a row that stood before is set to what does not vary, such as a state or an owner."""
        for name in row.after or {} if row.table and row.before else ():
            former, later = states_of(name, [row.before, row.after])
            changed = (part for part in later if former.get(part) != later[part] and not self._varies(row, name))
            if any(isinstance(later[part], str) and added_part(former.get(part), later[part]) is None for part in changed):
                return True
        return False

    def _additions(self, rows: Iterable[RowDifference]) -> Iterator[tuple[StoreColumn, float]]:
        """Yield what adds up in these rows: a new row or file (column "", by 0), an item of a list and a text in a file (by 0),
        a number with its change. What varies is left out."""
        for row in rows:
            if row.before is None and row.after is not None:
                yield (*_table_of(row), ""), 0.0
            former, later = row.before or {}, row.after or {}
            names = self._telling(row) if _is_file(row) else [name for name in later if not self._varies(row, name)]
            for name in names:
                before, after = states_of(name, [former, later])
                for part, value in after.items():
                    was = before.get(part, 0 if part.path or name not in former else None)
                    by = added_part("" if _is_file(row) and name not in former else was, value)
                    is_set = isinstance(value, int | float) and is_time(value)
                    if by and not is_set and (_is_file(row) or not isinstance(by, str)):
                        yield (*_table_of(row), part.name), 0.0 if part.is_item or isinstance(by, str) else float(by)

    def _compare_varying(self) -> None:
        """Compare how often values that vary were changed."""
        twice = frozenset(call.number for call in self._course.calls if point_of(call.point or "").before == "twice")
        changes = self._changes = value_changes(self._course, self._clean.rows_vary)
        self._sums = self._clean.values.sums(changes)
        for place, times, normal, is_sure in self._clean.values.judgements(changes, twice):
            effects, row = self._of_value(place, changes.get(place, ()), times > normal), self._row_of(place)
            if not is_sure:
                what = " or ".join(effects) or "a call"
                self.unsure.append(f"{place.name} varies between clean runs, so nobody can say whether {what} stands again")
                continue
            for effect in effects or [""]:
                if times > normal:
                    self._varied[effect].add(place.store_column)
                done = max((self._times_of(each) for each in self._clean.effects if each.name == effect), default=0)
                more = min(1 + times - normal, done) if done > 1 else 1 + times - normal
                self._add(*(("doubled", effect, more) if times > normal else ("lost", effect, 0)), row)

    def _of_value(self, place: ValuePlace, made: Sequence[ValueChange], more: bool) -> list[str]:
        """Return whose effects changed a value another number of times: `more` often, or less often, than in the clean run."""
        makers = self._clean.values.makers(place, {place: made})
        effects = [each for each in self._clean.effects if any(map(place.holds, each.rows)) and each.identities & makers]
        here = Counter(same for change in made for same in change.identities)
        normal = Counter(same for effect in effects for same in effect.identities)
        other = here - normal if more else normal - here
        return [effect.name for effect in effects if effect.identities & other.keys()] or [each.name for each in effects[-1:]]

    def _row_of(self, place: ValuePlace) -> RowDifference:
        """Return the row that holds a value: `before` as the clean run leaves it, `after` as it is now."""
        clean, row = (next(filter(place.holds, rows.values()), None) for rows in (self._clean.rows, self._rows))
        seen = (row for reading in reversed(self._course.readings) for row in reading.changed if place.holds(row))
        known = row or clean or next(seen, None) or RowDifference(place.store, place.table, place.key, None, None)
        after = row.after if row else clean.before if clean else None
        return replace(known, before=clean.after if clean else known.before, after=after)

    def _add(self, kind: FindingKind, effect: str, times: int, row: RowDifference) -> None:
        held = self._held.setdefault((kind, effect), _Gathered(times, [], set()))
        held.times = max(held.times, times) if kind == "doubled" else min(held.times, times)
        held.rows.append(row)
        identities = {same for known in self._clean.effects if known.name == effect for same in known.identities}
        if kind == "lost":
            makers = {number for number, (_, same) in self._calls.items() if same in identities}
        else:
            makers = self._makers(row)
        held.calls |= {number for number in makers if self._calls[number][1] in identities} or makers

    def _add_unknown(self, row: RowDifference) -> None:
        """Add a row that no clean run changes. Where a call that was done more often does alike to another row in clean runs,
        its effect stands again: the next parcel was taken, a line was written with the next number."""
        makers = {self._calls[number][1] for number in self._makers(row)}
        for effect in self._clean.effects:
            alike = any(_shape(known) == _shape(row) for known in effect.rows)
            if alike and makers & effect.identities and (times := self._times_of(effect)) > 1:
                self._add("doubled", effect.name, times, row)
                return
        self._add("extra", "", 1, row)

    def _makers(self, row: RowDifference) -> set[int]:
        """Return the numbers of the calls in flight when the row changed."""
        return {number for step in self._steps.get(place_of(row), ()) for number in step.calls}

    # Rows that were added.

    def _compare_added(self) -> None:
        here = defaultdict[tuple[str, str], list[RowDifference]](list)
        for place in sorted(self._rows, key=lambda place: self._steps[place][0].started if place in self._steps else 0.0):
            if self._rows[place].before is None and place[1] != SEQUENCES:
                here[place[:2]].append(self._rows[place])
        there = defaultdict[tuple[str, str], list[RowDifference]](list)
        for place, row in self._clean.rows.items():
            if row.before is None and place[1] != SEQUENCES:
                there[place[:2]].append(row)
        for table in dict.fromkeys((*there, *here)):
            self._compare_table(there[table], here[table])

    def _compare_table(self, clean: list[RowDifference], rows: list[RowDifference]) -> None:
        missing = {place_of(row): row for row in clean}
        signs, alike = defaultdict[str, list[RowDifference]](list), defaultdict[str, list[_Version]](list)
        for row in clean:
            signs[self._sign(row, self._clean_made)].append(row)
            for at, (effect, version) in enumerate(self._versions.get(place_of(row), ())):
                alike[self._likeness(version)].append(_Version(row, at, effect, version))
        left = list[RowDifference]()
        for row in rows:
            if same := signs[self._sign(row, self._made)]:
                del missing[place_of(same.pop(0))]
            else:
                left.append(row)
        surplus = Counter[tuple[str, str]]()
        for is_strict in (True, False):  # first those that stand for a clean row, at its end or before a later effect on it
            left = [row for row in left if not self._is_known(row, alike[self._likeness(row)], missing, is_strict)]
        for row in left:
            self._explain(row, alike[self._likeness(row)], missing, surplus)
        for row in missing.values():
            self._add("lost", self._maker(row), 0, replace(row, before=row.after, after=None))

    def _is_known(
        self, row: RowDifference, alike: Sequence[_Version], missing: dict[RowPlace, RowDifference], is_strict: bool
    ) -> bool:
        """Return whether a row stands for a clean row, which is missing no more. A number can be the key of another row by
        chance: `is_strict` takes no key for another that refers to a row like it."""
        likest = sorted(alike, key=lambda version: self._count_shared(version.state, row), reverse=True)
        for version in likest:
            place = place_of(version.row)
            if place in missing and self._equal(version, row) and not (is_strict and self._refers(version.state, row)):
                del missing[place]
                for later, _ in self._versions[place][version.at + 1 :]:
                    self._add("lost", later.name, 0, replace(row, before=version.row.after))
                return True
        return False

    def _explain(
        self,
        row: RowDifference,
        alike: Sequence[_Version],
        missing: dict[RowPlace, RowDifference],
        surplus: Counter[tuple[str, str]],
    ) -> None:
        """Return what a row is that matches no clean row: a second copy of a row, a row with another value, or neither."""
        twins = [version for version in alike if self._equal(version, row)]
        twins.sort(key=lambda version: self._refers(version.state, row))
        if twin := max(twins, key=lambda version: self._count_shared(version.state, row), default=None):
            maker = self._versions[place_of(twin.row)][0][0]
            likeness = self._likeness(twin.state)
            like = sum(
                near.before is None and near.table == row.table and self._likeness(near) == likeness for near in maker.rows
            )
            surplus[maker.name, likeness] += 1
            self._add("doubled", maker.name, 1 + -(-surplus[maker.name, likeness] // (like or 1)), row)
            return
        if same := missing.pop(place_of(row), None):
            difference = replace(row, before=same.after)
            self._compare_cells(difference, {}, self._versions.get(place_of(row), ()))
            return
        near = max(missing.values(), key=lambda other: self._count_shared(other, row), default=None)
        if near is not None and 2 * self._count_shared(near, row) >= len(columns_of(near)):
            del missing[place_of(near)]
            self._add("changed", self._maker(near), 1, replace(row, before=near.after))
        else:
            self._add_unknown(row)

    def _maker(self, row: RowDifference) -> str:
        versions = self._versions.get(place_of(row))
        return versions[0][0].name if versions else ""

    def _labels(self, rows: ChangedRows) -> Mapping[Cell, frozenset[_Label]]:
        """Return the values that are keys of added rows -> the rows with these keys, by the rest of their content."""
        made = defaultdict[Cell, set[_Label]](set)
        for row in rows.values():
            for value in _own_keys(row):
                made[value].add((row.store, row.table, self._likeness(row)))
        return {value: frozenset(labels) for value, labels in made.items()}

    def _likeness(self, row: RowDifference) -> str:
        """Return a value that is equal for rows which differ only in keys that the store made, and in values that vary."""
        keys, cells = key_columns(row), columns_of(row)
        rest = {
            name: value
            for name, value in cells.items()
            if name not in keys and value not in self._keys and not self._varies(row, name)
        }
        return json.dumps(rest, sort_keys=True)

    def _sign(self, row: RowDifference, made: Mapping[Cell, frozenset[_Label]]) -> str:
        """Return a value that is equal for equal rows. Values that vary are left out, or are replaced by the row to which they
        refer."""
        keys, shown = key_columns(row), dict[str, Cell | list[_Label]]()
        for name, value in columns_of(row).items():
            if not self._varies(row, name):
                shown[name] = value
            elif name not in keys:
                shown[name] = sorted(made.get(value, ()))
        return json.dumps(shown, sort_keys=True)

    def _varies(self, row: RowDifference, column: str) -> bool:
        """Return whether the value of a row varies in clean runs. `before` can be any former state of the row."""
        place = place_of(row)
        known = self._clean.rows.get(place) or self._rows.get(place) or row
        return self._clean.rows_vary.has(place, column, is_added=known.before is None)

    def _refers_alike(self, normal: Cell, now: Cell) -> bool:
        """Return whether two values are the keys of rows that are alike. A name that clean runs make too is its own."""
        if isinstance(now, str) and now in self._clean_made:
            return now == normal
        return not self._clean_made.get(normal, frozenset()).isdisjoint(self._made.get(now, ()))

    def _equal(self, version: _Version, row: RowDifference) -> bool:
        """Return whether a row equals a clean row in this version, with the same key or with another key that the store
        made."""
        here, there, keys = columns_of(row), columns_of(version.state), key_columns(row)
        for name in {**here, **there}:
            normal, now = there.get(name), here.get(name)
            if name in keys:
                continue
            if self._varies(row, name):
                if normal in self._clean_made and not self._refers_alike(normal, now):
                    return False
            elif normal != now and not self._refers_alike(normal, now):
                return False
        other = [name for name in keys if here[name] != there.get(name) and not self._varies(row, name)]
        return not other or not self._is_named(row, self._maker(version.row))

    def _refers(self, clean: RowDifference, row: RowDifference) -> bool:
        """Return whether two rows that are equal are so by keys of other rows alone."""
        here, there, keys = columns_of(row), columns_of(clean), key_columns(row)
        return any(here.get(name) != there[name] for name in there if name not in keys and not self._varies(row, name))

    def _is_named(self, row: RowDifference, effect: str) -> bool:
        """Return whether the calls that made a row named its key. The row is then no second copy under another key. A call that
        equals the effect's call cannot have named two keys."""
        same = {identity for held in self._clean.effects if held.name == effect for identity in held.identities}
        makers = [self._calls[number] for number in self._makers(row) if number in self._calls]
        if any(identity in same for _, identity in makers):
            return False
        cells = columns_of(row)
        values = [str(cells[name]) for name in key_columns(row)]
        texts = [self._course.texts.get(call.arguments, "") for call, _ in makers]
        return any(all(value in text for value in values) for text in texts)

    def _count_shared(self, clean: RowDifference, row: RowDifference) -> int:
        here, there = columns_of(clean), columns_of(row)
        return sum(name in there and (self._varies(clean, name) or there[name] == value) for name, value in here.items())

    # Rows that stood there before.

    def _compare_others(self) -> None:
        for place in dict.fromkeys((*self._clean.rows, *self._rows)):
            clean, row = self._clean.rows.get(place), self._rows.get(place)
            stood = (clean or row or _NOWHERE).before
            if stood is None or place[1] == SEQUENCES:
                continue
            normal = clean.after if clean else stood
            now = row.after if row else stood
            difference = RowDifference(*place, normal, now)
            versions = self._versions.get(place, ())
            if normal is None or now is None:
                if (normal is None) != (now is None):
                    self._compare_removed(difference, stood, versions)
            else:
                self._compare_cells(difference, stood, versions)

    def _compare_removed(self, row: RowDifference, stood: Row, versions: Sequence[tuple[CleanEffect, RowDifference]]) -> None:
        if row.after is None:
            if versions:
                self._add("changed", versions[-1][0].name, 1, row)
            else:
                self._add_unknown(row)
        elif row.after == stood or any(row.after == version.after for _, version in versions):
            self._add("lost", versions[-1][0].name if versions else "", 0, row)
        else:
            self._add("changed", versions[-1][0].name if versions else "", 1, row)

    def _compare_cells(self, row: RowDifference, stood: Row, versions: Sequence[tuple[CleanEffect, RowDifference]]) -> None:
        normal, now = row.before or {}, row.after or {}
        names = self._telling(row) if _is_file(row) else {**normal, **now}
        differing = [name for name in names if normal.get(name) != now.get(name) and not self._varies(row, name)]
        for name in differing:
            if self._refers_alike(normal.get(name), now.get(name)):
                continue
            if self._step.is_overwritten(place_of(row), name, now.get(name)):
                self._add("overwritten", versions[-1][0].name if versions else "", 1, row)
                continue
            states = states_of(name, [stood, *(version.after for _, version in versions), normal, now])
            for part in dict.fromkeys((*states[-2], *states[-1])):
                nothing = 0 if part.is_item else None
                if states[-2].get(part, nothing) != states[-1].get(part, nothing):
                    self._compare_part(row, part, states, [effect for effect, _ in versions])

    def _compare_part(
        self, row: RowDifference, part: CellPart, states: Sequence[Mapping[CellPart, Cell]], effects: Sequence[CleanEffect]
    ) -> None:
        """Compare a value that is another than in the clean run.

        Args:
            row: The row that holds the value.
            part: Where the value is in the row.
            states: The parts of the column at the reset, after each effect of the clean run, at its end, and now.
            effects: The effects on the row.
        """
        normal, now = (state.get(part, 0 if part.is_item else None) for state in states[-2:])
        course = [state.get(part, 0 if part.is_item else None) for state in states[:-2]]
        steps = [
            (effect, former, later)
            for effect, former, later in zip(effects, course, course[1:], strict=False)
            if former != later
        ]
        if not steps:
            known = [effect for effect, former, later in zip(effects, states, states[1:], strict=False) if former != later]
            if known:
                self._add("changed", known[-1].name, 1, row)
            else:
                self._add_unknown(row)
            return
        nothing = "" if isinstance(normal, str) else 0  # what a value that was made was made from
        stood, likely = course[0] if part in states[0] else nothing, [self._times_of(effect) for effect, _, _ in steps]
        times = times_made([(former, later) for _, former, later in steps], stood, normal, now, likely)
        if times is None:
            self._add("changed", steps[-1][0].name, 1, row)
            return
        for (effect, _, _), stands in zip(steps, times, strict=True):
            if stands != 1:
                self._add("doubled" if stands > 1 else "lost", effect.name, stands, row)

    def _telling(self, row: RowDifference) -> Iterator[str]:
        """Yield the columns by which files are compared: kind and mode, and the column that says most of the content."""
        yield from ("kind", "mode")
        for name in ("text", "appended", "size", "digest"):
            cells = (row.before or {}).get(name), (row.after or {}).get(name)
            if None not in cells and not self._varies(row, name) and (name != "size" or cells[0] != cells[1]):
                yield name
                return

    def _times_of(self, effect: CleanEffect) -> int:
        """Return how often an effect was made according to the journal: how often its calls were done, in clean runs each."""
        done, counts = self._done, self._clean.counts
        return 1 + max((done[identity] - counts[identity] for identity in effect.identities), default=0)


def _is_file(row: RowDifference) -> bool:
    return not row.table and "digest" in (row.after or {})


def _table_of(row: RowDifference) -> tuple[str, str]:
    """Return the store and the table of a row. A file stands for itself."""
    return row.store, row.table or row.key


def _tables_of_added(rows: Iterable[RowDifference]) -> set[tuple[str, str]]:
    """Return the tables to which these rows were added."""
    return {_table_of(row) for row in rows if row.before is None}


def _shape(row: RowDifference) -> tuple[object, ...]:
    """Return what is done to a row, whatever the row is: its table, and which columns change."""
    before, after = row.before or {}, row.after or {}
    changed = frozenset(name for name in {**before, **after} if before.get(name) != after.get(name))
    return row.store, row.table, row.before is None, row.after is None, changed if row.before and row.after else None


_NOWHERE = RowDifference("", "", "", None, None)


def _own_keys(row: RowDifference) -> set[Cell]:
    """Return the values in the key of a row that was added to a table."""
    if row.before is not None or row.table in ("", SEQUENCES):
        return set()
    cells = columns_of(row)
    return {cells[name] for name in key_columns(row)}


def _keys_made(rows: ChangedRows) -> set[Cell]:
    return {value for row in rows.values() for value in _own_keys(row)}


def _versions(effects: Sequence[CleanEffect]) -> Mapping[RowPlace, Sequence[tuple[CleanEffect, RowDifference]]]:
    """Return for each row the effects on it, each with the row as the effect left it."""
    versions = defaultdict[RowPlace, list[tuple[CleanEffect, RowDifference]]](list)
    for effect in effects:
        for row in effect.rows:
            versions[place_of(row)].append((effect, row))
    return versions
