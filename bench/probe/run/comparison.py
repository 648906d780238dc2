"""Compares the rows at the end of a cell with the rows at the end of the clean runs, effect by effect."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bench.probe.points import point_of
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.cell_parts import CellPart, parts_of_column
from bench.probe.run.clean import Clean, CleanEffect
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.meanwhile import ExpectedWithStatement
from bench.probe.run.times import added_part, effect_counts, is_time
from bench.probe.run.varying import CONTENT, ValueChange, ValueChanges, ValuePlace, value_changes
from bench.probe.run.volatile import ChangedRows, StoreColumn, columns_of, key_columns, place_of
from bench.record.probe_events import CellFinding, Culprit, FindingKind, GatewayCall
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference

_Label = tuple[str, str, str]
"""Store, table and content of an added row: what stands for its key where another row refers to it."""


def is_by_tool(point: str | None) -> bool:
    """Return whether a call that is struck at this point reaches its tool twice, so that a repeated effect is the tool's
    fault."""
    return point is not None and point_of(point).by_tool


def is_done(call: GatewayCall) -> bool:
    """Return whether the server did a call, according to its response."""
    return call.passed_on is not None and call.answered is not None and not call.failed


def times_done(agent_run: AgentRun) -> Counter[str]:
    """Count how often each call was done, according to the responses. A call that was delivered twice was done twice."""
    times = Counter[str]()
    for call, identity, _ in agent_run.outer_calls():
        times[identity] += is_done(call) * (2 if is_by_tool(call.point) else 1)
    return times


@dataclass
class _FindingRows:
    """The rows and calls of one finding, while they are collected."""

    times: int
    rows: list[RowDifference]
    calls: set[int]


@dataclass(frozen=True)
class _RowVersion:
    """The state of an added row of the clean runs after one of its effects, the one with index `at`."""

    row: RowDifference
    at: int
    effect: CleanEffect
    state: RowDifference


class CellComparison:
    """Compares the rows of a cell with the rows of the clean runs.

    An added row whose key the store generated is matched by its other columns. A column that refers to such a key is matched
    by the row that it refers to.
    """

    def __init__(self, clean: Clean, agent_run: AgentRun, point: str | None):
        self._step = ExpectedWithStatement.of(
            clean, [row for reading in agent_run.readings if reading.other for row in reading.changed]
        )
        self._clean = clean = self._step.clean
        self._agent_run, self._point = agent_run, point
        self._rows = agent_run.rows
        self._steps, self._done = agent_run.changes_by_row(), times_done(agent_run)
        self._keys = _keys_of_all_added(self._rows) | _keys_of_all_added(clean.rows)
        self._made, self._clean_made = self._key_labels(self._rows), self._key_labels(clean.rows)
        self._versions = _versions(clean.effects)
        self._rows_by_finding = dict[tuple[FindingKind, str], _FindingRows]()
        self._calls = {call.number: (call, same) for call, same in zip(agent_run.calls, agent_run.identities, strict=True)}
        self.unsure = list[str]()
        self._varied = defaultdict[str, set[StoreColumn]](set)
        """Effect -> the varying values that it changed more often."""
        self._changes: ValueChanges = {}
        self._sums = dict[ValuePlace, float]()
        """The varying values to which calls add, with the number by which each change adds (`ValueJudge.sums`)."""

    def findings(self) -> Iterator[CellFinding]:
        """Yield the differences that are certain. `unsure` then has the differences that may or may not be another effect."""
        if self._agent_run.readings and self._agent_run.readings[-1].digest == self._clean.digest:
            return
        self._compare_added()
        self._compare_existing()
        self._compare_varying()
        for (kind, effect), collected in self._rows_by_finding.items():
            if kind == "doubled" and (trace := self._only_counter_or_audit_repeats(effect, collected.rows)):
                self.unsure.append(trace)
                continue
            is_tools = is_by_tool(self._point) and (kind != "lost" or point_of(self._point or "").before == "again")
            culprit: Culprit = "tool" if is_tools else "agent"
            yield CellFinding(kind, effect, collected.times, tuple(collected.rows), tuple(sorted(collected.calls)), culprit)

    def _only_counter_or_audit_repeats(self, effect: str, rows: Sequence[RowDifference]) -> str:
        """Return in words which counter or audit row is all that repeats of a call's effect; "" if more repeats.

        A tool that does each key once may count the tries, or write a row about each. Then a number that goes up by 1, or a
        new row, repeats, and the rest of the effect, which would add up too, does not.
        """
        clean_effects = [other_effect for other_effect in self._clean.effects if other_effect.name == effect]
        if len(clean_effects) != 1 or len(clean_effects[0].identities) != 1:
            return ""
        added_to = {_table_of(row) for row in rows if row.before is None}
        repeated = {column for column, _ in self._added_amounts(rows) if column[:2] not in added_to or not column[2]}
        repeated |= self._varied[effect]
        makers = partial(self._clean.values.makers, changes=self._changes)
        varying = {
            place.store_column: amount for place, amount in self._sums.items() if makers(place) & clean_effects[0].identities
        }
        all_amounts = dict(self._added_amounts(clean_effects[0].rows)) | varying
        shared = {
            column_place
            for other_effect in self._clean.effects
            if other_effect is not clean_effects[0]
            for column_place, _ in self._added_amounts(other_effect.rows)
            if column_place[2]
        }
        files = {column[:2] for column in repeated if column[2] in (CONTENT, "text", "appended")}  # a new file is its text
        unrepeated = [
            amount
            for column_place, amount in all_amounts.items()
            if column_place not in repeated | shared
            and (*column_place[:2], "") not in repeated
            and column_place[:2] not in files
        ]
        if not repeated or any(all_amounts.get(column) not in (0, 1) for column in repeated):
            return ""
        is_counter = all(all_amounts[column] == 1 for column in repeated) and any(map(self._sets_a_text, clean_effects[0].rows))
        if not any(amount != 1 for amount in unrepeated) and not is_counter:
            return ""
        store, table, column = min(repeated)
        repeated_thing = f"a row of {store}.{table}" if not column else f"{column} of {store}.{table}"
        return f"{repeated_thing} stands again and the rest of what {effect} does stands once"

    def _sets_a_text(self, row: RowDifference) -> bool:
        """Return whether an existing row's text is set to a value that does not vary, such as a state or an owner."""
        for name in row.after or {} if row.table and row.before else ():
            before, after = parts_of_column(name, [row.before, row.after])
            changed = (part for part in after if before.get(part) != after[part] and not self._varies(row, name))
            if any(isinstance(after[part], str) and added_part(before.get(part), after[part]) is None for part in changed):
                return True
        return False

    def _added_amounts(self, rows: Iterable[RowDifference]) -> Iterator[tuple[StoreColumn, float]]:
        """Yield what adds up in these rows: a new row or file (column "", amount 0), an item of a list and a text in a file
        (amount 0), a number with its change. Values that vary are left out."""
        for row in rows:
            if row.before is None and row.after is not None:
                yield (*_table_of(row), ""), 0.0
            row_before, row_after = row.before or {}, row.after or {}
            names = (
                self._compared_columns(row) if _is_file(row) else [name for name in row_after if not self._varies(row, name)]
            )
            for name in names:
                before, after = parts_of_column(name, [row_before, row_after])
                for part, value in after.items():
                    value_before = before.get(part, 0 if part.path or name not in row_before else None)
                    added = added_part("" if _is_file(row) and name not in row_before else value_before, value)
                    is_set = isinstance(value, int | float) and is_time(value)
                    if added and not is_set and (_is_file(row) or not isinstance(added, str)):
                        yield (*_table_of(row), part.name), 0.0 if part.is_item or isinstance(added, str) else float(added)

    def _compare_varying(self) -> None:
        """Compare how often the values that vary were changed."""
        twice = frozenset(call.number for call in self._agent_run.calls if point_of(call.point or "").before == "twice")
        changes = self._changes = value_changes(self._agent_run, self._clean.rows_vary)
        self._sums = self._clean.values.sums(changes)
        for place, times, clean_times, is_sure in self._clean.values.judgements(changes, twice):
            effects, row = (
                self._effects_on_value(place, changes.get(place, ()), times > clean_times),
                self._row_with_value(place),
            )
            if not is_sure:
                calls = " or ".join(effects) or "a call"
                self.unsure.append(f"{place.name} varies between clean runs, so nobody can say whether {calls} stands again")
                continue
            for effect in effects or [""]:
                if times > clean_times:
                    self._varied[effect].add(place.store_column)
                times_done_by_journal = max(
                    (
                        self._times_by_journal(clean_effect)
                        for clean_effect in self._clean.effects
                        if clean_effect.name == effect
                    ),
                    default=0,
                )
                count = (
                    min(1 + times - clean_times, times_done_by_journal)
                    if times_done_by_journal > 1
                    else 1 + times - clean_times
                )
                self._add_finding(*(("doubled", effect, count) if times > clean_times else ("lost", effect, 0)), row)

    def _effects_on_value(self, place: ValuePlace, value_changes: Sequence[ValueChange], is_more: bool) -> list[str]:
        """Return the effects whose calls changed a value more often than in the clean run if `more`, else less often."""
        makers = self._clean.values.makers(place, {place: value_changes})
        effects = [
            effect_on_value
            for effect_on_value in self._clean.effects
            if any(map(place.holds, effect_on_value.rows)) and effect_on_value.identities & makers
        ]
        cell_counts = Counter(identity for change in value_changes for identity in change.identities)
        clean_counts = Counter(identity for effect in effects for identity in effect.identities)
        surplus = cell_counts - clean_counts if is_more else clean_counts - cell_counts
        return [effect.name for effect in effects if effect.identities & surplus.keys()] or [
            effect_on_value.name for effect_on_value in effects[-1:]
        ]

    def _row_with_value(self, place: ValuePlace) -> RowDifference:
        """Return the row of a value: `before` as the clean run leaves it, `after` as the cell does."""
        clean, row = (next(filter(place.holds, rows.values()), None) for rows in (self._clean.rows, self._rows))
        readings_of_row = (row for reading in reversed(self._agent_run.readings) for row in reading.changed if place.holds(row))
        known = row or clean or next(readings_of_row, None) or RowDifference(place.store, place.table, place.key, None, None)
        after = row.after if row else clean.before if clean else None
        return replace(known, before=clean.after if clean else known.before, after=after)

    def _add_finding(self, kind: FindingKind, effect: str, times: int, row: RowDifference) -> None:
        """Add a row to the finding of this kind on an effect."""
        collected = self._rows_by_finding.setdefault((kind, effect), _FindingRows(times, [], set()))
        collected.times = max(collected.times, times) if kind == "doubled" else min(collected.times, times)
        collected.rows.append(row)
        identities = {identity for known in self._clean.effects if known.name == effect for identity in known.identities}
        if kind == "lost":
            makers = {number for number, (_, identity) in self._calls.items() if identity in identities}
        else:
            makers = self._calls_at_change(row)
        collected.calls |= {number for number in makers if self._calls[number][1] in identities} or makers

    def _add_unknown_row(self, row: RowDifference) -> None:
        """Add a row that no clean run changes. If a call was done more often, and changes another row in the same way in the
        clean runs, its effect is doubled: it took the next parcel, or wrote a line with the next number."""
        makers = {self._calls[number][1] for number in self._calls_at_change(row)}
        for effect in self._clean.effects:
            alike = any(_shape(known) == _shape(row) for known in effect.rows)
            if alike and makers & effect.identities and (times := self._times_by_journal(effect)) > 1:
                self._add_finding("doubled", effect.name, times, row)
                return
        self._add_finding("extra", "", 1, row)

    def _calls_at_change(self, row: RowDifference) -> set[int]:
        """Return the numbers of the calls in flight when the row changed."""
        return {number for step in self._steps.get(place_of(row), ()) for number in step.calls}

    # Rows that were added.

    def _compare_added(self) -> None:
        """Compare the rows that were added, table by table."""
        cell_rows = defaultdict[tuple[str, str], list[RowDifference]](list)
        for place in sorted(self._rows, key=lambda place: self._steps[place][0].started if place in self._steps else 0.0):
            if self._rows[place].before is None and place[1] != SEQUENCES:
                cell_rows[place[:2]].append(self._rows[place])
        clean_rows = defaultdict[tuple[str, str], list[RowDifference]](list)
        for place, row in self._clean.rows.items():
            if row.before is None and place[1] != SEQUENCES:
                clean_rows[place[:2]].append(row)
        for table in dict.fromkeys((*clean_rows, *cell_rows)):
            self._compare_table(clean_rows[table], cell_rows[table])

    def _compare_table(self, clean: list[RowDifference], rows: list[RowDifference]) -> None:
        """Compare the rows that were added to a table."""
        missing = {place_of(row): row for row in clean}
        clean_by_full_key, versions_by_content = (
            defaultdict[str, list[RowDifference]](list),
            defaultdict[str, list[_RowVersion]](list),
        )
        for row in clean:
            clean_by_full_key[self._full_key(row, self._clean_made)].append(row)
            for at, (effect, version) in enumerate(self._versions.get(place_of(row), ())):
                versions_by_content[self._content_key(version)].append(_RowVersion(row, at, effect, version))
        unmatched = list[RowDifference]()
        for row in rows:
            if equal_rows := clean_by_full_key[self._full_key(row, self._made)]:
                del missing[place_of(equal_rows.pop(0))]
            else:
                unmatched.append(row)
        surplus = Counter[tuple[str, str]]()
        for is_strict in (True, False):  # first those that stand for a clean row, at its end or before a later effect on it
            unmatched = [
                row
                for row in unmatched
                if not self._match_clean_row(row, versions_by_content[self._content_key(row)], missing, is_strict)
            ]
        for row in unmatched:
            self._classify_unmatched(row, versions_by_content[self._content_key(row)], missing, surplus)
        for row in missing.values():
            self._add_finding("lost", self._maker_of(row), 0, replace(row, before=row.after, after=None))

    def _match_clean_row(
        self, row: RowDifference, alike: Sequence[_RowVersion], missing: dict[RowPlace, RowDifference], is_strict: bool
    ) -> bool:
        """Return whether a row matches a missing clean row, and count that as found.

        A number can equal the key of another row by chance: if `is_strict`, a row that matches only by references does not
        count.
        """
        by_similarity = sorted(alike, key=lambda version: self._count_equal_columns(version.state, row), reverse=True)
        for version in by_similarity:
            place = place_of(version.row)
            if (
                place in missing
                and self._equals_version(version, row)
                and not (is_strict and self._differs_by_references(version.state, row))
            ):
                del missing[place]
                for lost_effect, _ in self._versions[place][version.at + 1 :]:
                    self._add_finding("lost", lost_effect.name, 0, replace(row, before=version.row.after))
                return True
        return False

    def _classify_unmatched(
        self,
        row: RowDifference,
        alike: Sequence[_RowVersion],
        missing: dict[RowPlace, RowDifference],
        surplus: Counter[tuple[str, str]],
    ) -> None:
        """Add the finding on a row that matches no clean row: a second copy of a row, a row with another value, or neither."""
        twins = [version for version in alike if self._equals_version(version, row)]
        twins.sort(key=lambda version: self._differs_by_references(version.state, row))
        if twin := max(twins, key=lambda version: self._count_equal_columns(version.state, row), default=None):
            maker = self._versions[place_of(twin.row)][0][0]
            likeness = self._content_key(twin.state)
            copies_per_effect = sum(
                most_similar.before is None and most_similar.table == row.table and self._content_key(most_similar) == likeness
                for most_similar in maker.rows
            )
            surplus[maker.name, likeness] += 1
            self._add_finding("doubled", maker.name, 1 + -(-surplus[maker.name, likeness] // (copies_per_effect or 1)), row)
            return
        if clean_row := missing.pop(place_of(row), None):
            difference = replace(row, before=clean_row.after)
            self._compare_cells(difference, {}, self._versions.get(place_of(row), ()))
            return
        most_similar = max(missing.values(), key=lambda candidate: self._count_equal_columns(candidate, row), default=None)
        if most_similar is not None and 2 * self._count_equal_columns(most_similar, row) >= len(columns_of(most_similar)):
            del missing[place_of(most_similar)]
            self._add_finding("changed", self._maker_of(most_similar), 1, replace(row, before=most_similar.after))
        else:
            self._add_unknown_row(row)

    def _maker_of(self, row: RowDifference) -> str:
        """Return the name of the effect that added a clean row."""
        versions = self._versions.get(place_of(row))
        return versions[0][0].name if versions else ""

    def _key_labels(self, rows: ChangedRows) -> Mapping[Cell, frozenset[_Label]]:
        """Return each key of an added row -> the rows with this key, by their other content."""
        made = defaultdict[Cell, set[_Label]](set)
        for row in rows.values():
            for value in _keys_of_added(row):
                made[value].add((row.store, row.table, self._content_key(row)))
        return {value: frozenset(labels) for value, labels in made.items()}

    def _content_key(self, row: RowDifference) -> str:
        """Return a text that is equal for rows which differ only in generated keys, and in values that vary."""
        keys, cells = key_columns(row), columns_of(row)
        rest = {
            name: value
            for name, value in cells.items()
            if name not in keys and value not in self._keys and not self._varies(row, name)
        }
        return json.dumps(rest, sort_keys=True)

    def _full_key(self, row: RowDifference, labels: Mapping[Cell, frozenset[_Label]]) -> str:
        """Return a text that is equal for equal rows. A value that varies is left out, or replaced by the row to which it
        refers."""
        keys, columns = key_columns(row), dict[str, Cell | list[_Label]]()
        for name, value in columns_of(row).items():
            if not self._varies(row, name):
                columns[name] = value
            elif name not in keys:
                columns[name] = sorted(labels.get(value, ()))
        return json.dumps(columns, sort_keys=True)

    def _varies(self, row: RowDifference, column: str) -> bool:
        """Return whether a value of a row varies in the clean runs. `before` may be any former state of the row."""
        place = place_of(row)
        known = self._clean.rows.get(place) or self._rows.get(place) or row
        return self._clean.rows_vary.has(place, column, is_added=known.before is None)

    def _refer_to_alike_rows(self, clean_value: Cell, value: Cell) -> bool:
        """Return whether two values are the keys of rows with equal content. A name that clean runs use too refers only to
        itself."""
        if isinstance(value, str) and value in self._clean_made:
            return value == clean_value
        return not self._clean_made.get(clean_value, frozenset()).isdisjoint(self._made.get(value, ()))

    def _equals_version(self, version: _RowVersion, row: RowDifference) -> bool:
        """Return whether a row equals a version of a clean row, with the same key or with another generated key."""
        columns, clean_columns, keys = columns_of(row), columns_of(version.state), key_columns(row)
        for name in {**columns, **clean_columns}:
            clean_value, value = clean_columns.get(name), columns.get(name)
            if name in keys:
                continue
            if self._varies(row, name):
                if clean_value in self._clean_made and not self._refer_to_alike_rows(clean_value, value):
                    return False
            elif clean_value != value and not self._refer_to_alike_rows(clean_value, value):
                return False
        differing_keys = [name for name in keys if columns[name] != clean_columns.get(name) and not self._varies(row, name)]
        return not differing_keys or not self._is_key_named_by_call(row, self._maker_of(version.row))

    def _differs_by_references(self, clean: RowDifference, row: RowDifference) -> bool:
        """Return whether two equal rows differ in keys of other rows."""
        columns, clean_columns, keys = columns_of(row), columns_of(clean), key_columns(row)
        return any(
            columns.get(name) != clean_columns[name]
            for name in clean_columns
            if name not in keys and not self._varies(row, name)
        )

    def _is_key_named_by_call(self, row: RowDifference, effect: str) -> bool:
        """Return whether the calls that made a row named its key: the row is then no second copy with another key. A call
        that equals the effect's call cannot have named two keys."""
        identities = {
            identity
            for clean_effect in self._clean.effects
            if clean_effect.name == effect
            for identity in clean_effect.identities
        }
        makers = [self._calls[number] for number in self._calls_at_change(row) if number in self._calls]
        if any(identity in identities for _, identity in makers):
            return False
        cells = columns_of(row)
        values = [str(cells[name]) for name in key_columns(row)]
        texts = [self._agent_run.texts.get(call.arguments, "") for call, _ in makers]
        return any(all(value in text for value in values) for text in texts)

    def _count_equal_columns(self, clean: RowDifference, row: RowDifference) -> int:
        """Return the number of columns that two rows have in common."""
        clean_columns, columns = columns_of(clean), columns_of(row)
        return sum(
            name in columns and (self._varies(clean, name) or columns[name] == value) for name, value in clean_columns.items()
        )

    # Rows that stood there before.

    def _compare_existing(self) -> None:
        """Compare the rows that existed at the reset."""
        for place in dict.fromkeys((*self._clean.rows, *self._rows)):
            clean, row = self._clean.rows.get(place), self._rows.get(place)
            initial = (clean or row or _NOWHERE).before
            if initial is None or place[1] == SEQUENCES:
                continue
            clean_state = clean.after if clean else initial
            state = row.after if row else initial
            difference = RowDifference(*place, clean_state, state)
            versions = self._versions.get(place, ())
            if clean_state is None or state is None:
                if (clean_state is None) != (state is None):
                    self._compare_removed(difference, initial, versions)
            else:
                self._compare_cells(difference, initial, versions)

    def _compare_removed(self, row: RowDifference, initial: Row, versions: Sequence[tuple[CleanEffect, RowDifference]]) -> None:
        """Compare a row that was removed in the cell or in the clean run."""
        if row.after is None:
            if versions:
                self._add_finding("changed", versions[-1][0].name, 1, row)
            else:
                self._add_unknown_row(row)
        elif row.after == initial or any(row.after == version.after for _, version in versions):
            self._add_finding("lost", versions[-1][0].name if versions else "", 0, row)
        else:
            self._add_finding("changed", versions[-1][0].name if versions else "", 1, row)

    def _compare_cells(self, row: RowDifference, initial: Row, versions: Sequence[tuple[CleanEffect, RowDifference]]) -> None:
        """Compare the values of a row, column by column and part by part."""
        clean_state, state = row.before or {}, row.after or {}
        names = self._compared_columns(row) if _is_file(row) else {**clean_state, **state}
        differing = [name for name in names if clean_state.get(name) != state.get(name) and not self._varies(row, name)]
        for name in differing:
            if self._refer_to_alike_rows(clean_state.get(name), state.get(name)):
                continue
            if self._step.is_overwritten(place_of(row), name, state.get(name)):
                self._add_finding("overwritten", versions[-1][0].name if versions else "", 1, row)
                continue
            states = parts_of_column(name, [initial, *(version.after for _, version in versions), clean_state, state])
            for part in dict.fromkeys((*states[-2], *states[-1])):
                default = 0 if part.is_item else None
                if states[-2].get(part, default) != states[-1].get(part, default):
                    self._compare_part(row, part, states, [effect for effect, _ in versions])

    def _compare_part(
        self, row: RowDifference, part: CellPart, states: Sequence[Mapping[CellPart, Cell]], effects: Sequence[CleanEffect]
    ) -> None:
        """Compare a part of a value that differs from the clean run.

        Args:
            row: The row.
            part: The part of the value.
            states: The parts of the column at the reset, after each effect of the clean run, at its end, and in the cell.
            effects: The effects on the row.
        """
        clean_value, value = (state.get(part, 0 if part.is_item else None) for state in states[-2:])
        clean_values = [state.get(part, 0 if part.is_item else None) for state in states[:-2]]
        steps = [
            (effect, before, after)
            for effect, before, after in zip(effects, clean_values, clean_values[1:], strict=False)
            if before != after
        ]
        if not steps:
            changing_effects = [
                effect for effect, before, after in zip(effects, states, states[1:], strict=False) if before != after
            ]
            if changing_effects:
                self._add_finding("changed", changing_effects[-1].name, 1, row)
            else:
                self._add_unknown_row(row)
            return
        default = "" if isinstance(clean_value, str) else 0  # what a value that was made was made from
        initial, likely = (
            clean_values[0] if part in states[0] else default,
            [self._times_by_journal(effect) for effect, _, _ in steps],
        )
        times = effect_counts([(before, after) for _, before, after in steps], initial, clean_value, value, likely)
        if times is None:
            self._add_finding("changed", steps[-1][0].name, 1, row)
            return
        for (effect, _, _), count in zip(steps, times, strict=True):
            if count != 1:
                self._add_finding("doubled" if count > 1 else "lost", effect.name, count, row)

    def _compared_columns(self, row: RowDifference) -> Iterator[str]:
        """Yield the columns by which files are compared: kind, mode, and the column that has most of the content."""
        yield from ("kind", "mode")
        for name in ("text", "appended", "size", "digest"):
            cells = (row.before or {}).get(name), (row.after or {}).get(name)
            if None not in cells and not self._varies(row, name) and (name != "size" or cells[0] != cells[1]):
                yield name
                return

    def _times_by_journal(self, effect: CleanEffect) -> int:
        """Return how often an effect was made according to the journal, relative to the clean runs."""
        times, counts = self._done, self._clean.counts
        return 1 + max((times[identity] - counts[identity] for identity in effect.identities), default=0)


def _is_file(row: RowDifference) -> bool:
    """Return whether a row is a file."""
    return not row.table and "digest" in (row.after or {})


def _table_of(row: RowDifference) -> tuple[str, str]:
    """Return the store and the table of a row; a file counts as its own table."""
    return row.store, row.table or row.key


def _shape(row: RowDifference) -> tuple[object, ...]:
    """Return how a row changed, whichever row it is: its table, and the columns that changed."""
    before, after = row.before or {}, row.after or {}
    changed = frozenset(name for name in {**before, **after} if before.get(name) != after.get(name))
    return row.store, row.table, row.before is None, row.after is None, changed if row.before and row.after else None


_NOWHERE = RowDifference("", "", "", None, None)


def _keys_of_added(row: RowDifference) -> set[Cell]:
    """Return the key values of a row that was added to a table."""
    if row.before is not None or row.table in ("", SEQUENCES):
        return set()
    cells = columns_of(row)
    return {cells[name] for name in key_columns(row)}


def _keys_of_all_added(rows: ChangedRows) -> set[Cell]:
    return {value for row in rows.values() for value in _keys_of_added(row)}


def _versions(effects: Sequence[CleanEffect]) -> Mapping[RowPlace, Sequence[tuple[CleanEffect, RowDifference]]]:
    """Return for each row the effects on it, each with the row after the effect."""
    versions = defaultdict[RowPlace, list[tuple[CleanEffect, RowDifference]]](list)
    for effect in effects:
        for row in effect.rows:
            versions[place_of(row)].append((effect, row))
    return versions
