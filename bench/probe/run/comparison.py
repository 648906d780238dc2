"""Compares the rows at the end of a cell with the rows at the end of the clean runs, effect by effect."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

from bench.probe.points import point_of
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.cell_parts import CellPart, parts_of_column
from bench.probe.run.clean import Clean, CleanEffect
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.meanwhile import ExpectedWithStatement
from bench.probe.run.row_matching import RowMatcher
from bench.probe.run.times import added_part, effect_counts, is_time
from bench.probe.run.varying import FILE_CONTENT, ValueChange, ValueChanges, ValuePlace, value_changes
from bench.probe.run.volatile import StoreColumn, columns_of, key_columns, place_of
from bench.record.probe_events import CellFinding, Culprit, FindingKind
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference


@dataclass
class _FindingRows:
    """The rows and calls of one finding, while they are collected."""

    times: int
    rows: list[RowDifference]
    calls: set[int]


class _EffectOnRow(NamedTuple):
    """An effect of the clean run, with a row as this effect changed it."""

    effect: CleanEffect
    row: RowDifference


@dataclass(frozen=True)
class _RowVersion:
    """The state of an added row of the clean runs after one of the effects on it.

    row           the row at the end of the clean runs
    effect_index  the index of the effect among the effects on the row
    state         the row after this effect
    """

    row: RowDifference
    effect_index: int
    state: RowDifference


class CellComparison:
    """Compares the rows of a cell with the rows of the clean runs.

    unsure   once `findings` has ended: the differences, in words, that may or may not be another effect
    """

    def __init__(self, clean: Clean, agent_run: AgentRun, point: str | None):
        others_rows = [row for reading in agent_run.readings if reading.other for row in reading.changed]
        self._expected = ExpectedWithStatement.of(clean, others_rows)
        self._clean = clean = self._expected.clean
        self._agent_run, self._point = agent_run, point_of(point)
        self._rows = agent_run.rows
        self._readings_by_row, self._times_done = agent_run.readings_by_row(), agent_run.times_done()
        self._matcher = RowMatcher(clean.rows, agent_run.rows, clean.rows_vary)
        self._effects_by_row = _effects_by_row(clean.effects)
        self._rows_by_finding = dict[tuple[FindingKind, str], _FindingRows]()
        self._calls = {call.number: call for call in agent_run.calls}
        self._identities = dict(zip(self._calls, agent_run.identities, strict=True))
        self.unsure = list[str]()
        self._repeated_varying = defaultdict[str, set[StoreColumn]](set)
        """Effect -> the varying values that it changed more often than in the clean runs."""
        self._changes: ValueChanges = {}
        self._varying_amounts = dict[ValuePlace, float]()
        """The varying values to which calls add, with the amount that each change adds (`ValueJudge.sums`)."""

    def findings(self) -> Iterator[CellFinding]:
        """Yield one finding for each kind of difference and effect, with all its rows and calls. Differences that may or may
        not be another effect are added to `unsure` instead."""
        if self._agent_run.readings and self._agent_run.readings[-1].digest == self._clean.digest:
            return  # the stores end as after the clean runs
        self._compare_added()
        self._compare_existing()
        self._compare_varying()
        for (kind, effect), collected in self._rows_by_finding.items():
            if kind == "doubled" and (harmless_repeat := self._repeated_counter_or_audit(effect, collected.rows)):
                self.unsure.append(harmless_repeat)
                continue
            # a tool that gets one call twice can double an effect; it can lose one only if a later effect came in between
            is_tool_fault = self._point.by_tool and (kind != "lost" or self._point.before == "again")
            culprit: Culprit = "tool" if is_tool_fault else "agent"
            yield CellFinding(kind, effect, collected.times, tuple(collected.rows), tuple(sorted(collected.calls)), culprit)

    def _repeated_counter_or_audit(self, effect: str, rows: Sequence[RowDifference]) -> str:
        """Return in words which counter or audit row repeats, if nothing else of a call's effect does; "" if more repeats.

        A tool that does each key once may count the tries, or write a row about each. Then a number that goes up by 1, or a
        new row, repeats, and the rest of the effect, which would add up too, does not.

        Args:
            effect: The name of the doubled effect.
            rows: The rows that show the repetition.
        """
        clean_effects = [clean_effect for clean_effect in self._clean.effects if clean_effect.name == effect]
        if len(clean_effects) != 1 or len(clean_effects[0].identities) != 1:
            return ""
        clean = clean_effects[0]
        tables_added_to = {_table_of(row) for row in rows if row.before is None}
        repeated = set(self._repeated_varying[effect])
        for store, table, column in dict(self._added_amounts(rows)):
            if (store, table) not in tables_added_to or not column:
                repeated.add((store, table, column))
        clean_amounts = dict(self._added_amounts(clean.rows))
        for place, amount in self._varying_amounts.items():
            if self._clean.values.makers(place, self._changes) & clean.identities:
                clean_amounts[place.store_column] = amount
        if not repeated or any(clean_amounts.get(column) not in (0, 1) for column in repeated):
            return ""
        others_rows = [row for other in self._clean.effects if other is not clean for row in other.rows]
        others_columns = {column for column, _ in self._added_amounts(others_rows) if column[2]}
        repeated_files = {column[:2] for column in repeated if column[2] in (FILE_CONTENT, "text", "appended")}
        unrepeated_amounts = [
            amount
            for (store, table, column), amount in clean_amounts.items()
            if (store, table, column) not in repeated | others_columns
            and (store, table, "") not in repeated
            and (store, table) not in repeated_files  # a new file is its text
        ]
        is_counter = all(clean_amounts[column] == 1 for column in repeated) and any(map(self._sets_a_text, clean.rows))
        if all(amount == 1 for amount in unrepeated_amounts) and not is_counter:
            return ""
        store, table, column = min(repeated)
        repeated_thing = f"a row of {store}.{table}" if not column else f"{column} of {store}.{table}"
        return f"{repeated_thing} stands again and the rest of what {effect} does stands once"

    def _sets_a_text(self, row: RowDifference) -> bool:
        """Return whether an existing row's text is set to a value that does not vary, such as a state or an owner."""
        if not (row.table and row.before and row.after):
            return False
        for name in row.after:
            before, after = parts_of_column(name, [row.before, row.after])
            changed = (part for part in after if before.get(part) != after[part] and not self._matcher.varies(row, name))
            if any(isinstance(after[part], str) and added_part(before.get(part), after[part]) is None for part in changed):
                return True
        return False

    def _added_amounts(self, rows: Iterable[RowDifference]) -> Iterator[tuple[StoreColumn, float]]:
        """Yield each column of these rows that would add up if the change were made again, with the amount that the change
        added: a new row or file (column "", amount 0), an item of a list and a text in a file (amount 0), a number. Values
        that vary are left out."""
        for row in rows:
            if row.before is None and row.after is not None:
                yield (*_table_of(row), ""), 0.0
            row_before, row_after = row.before or {}, row.after or {}
            compared = (
                self._compared_columns(row) if _is_file(row) else (n for n in row_after if not self._matcher.varies(row, n))
            )
            for name in compared:
                before, after = parts_of_column(name, [row_before, row_after])
                for part, value in after.items():
                    value_before = before.get(part, 0 if part.path or name not in row_before else None)
                    added = added_part("" if _is_file(row) and name not in row_before else value_before, value)
                    is_set = isinstance(value, int | float) and is_time(value)
                    if added and not is_set and (_is_file(row) or not isinstance(added, str)):
                        yield (*_table_of(row), part.name), 0.0 if part.is_item or isinstance(added, str) else float(added)

    def _compare_varying(self) -> None:
        """Add the findings on values that vary: how often they were changed, compared with the clean run."""
        delivered_twice = frozenset(call.number for call in self._agent_run.calls if point_of(call.point).before == "twice")
        changes = self._changes = value_changes(self._agent_run, self._clean.rows_vary)
        self._varying_amounts = self._clean.values.sums(changes)
        for place, times, clean_times, is_sure in self._clean.values.judgements(changes, delivered_twice):
            is_more, row = times > clean_times, self._row_with_value(place)
            effects = self._effects_on_value(place, changes.get(place, ()), is_more)
            if not is_sure:
                calls = " or ".join(effects) or "a call"
                self.unsure.append(f"{place.name} varies between clean runs, so nobody can say whether {calls} stands again")
                continue
            for effect in effects or [""]:  # "": nobody knows which call changed the value
                if not is_more:
                    self._add_finding("lost", effect, 0, row)
                    continue
                self._repeated_varying[effect].add(place.store_column)
                clean_effects = [clean_effect for clean_effect in self._clean.effects if clean_effect.name == effect]
                most_by_journal = max(map(self._times_by_journal, clean_effects), default=0)
                count = 1 + times - clean_times  # the effect itself, and each further change of the value
                if most_by_journal > 1:
                    count = min(count, most_by_journal)
                self._add_finding("doubled", effect, count, row)

    def _effects_on_value(self, place: ValuePlace, value_changes: Sequence[ValueChange], is_more: bool) -> list[str]:
        """Return the names of the effects whose calls changed a value more often than in the clean run if `is_more`, else less
        often; if no call did, the name of the last effect on the value."""
        makers = self._clean.values.makers(place, {place: value_changes})
        effects = [
            effect for effect in self._clean.effects if any(map(place.holds, effect.rows)) and effect.identities & makers
        ]
        cell_counts = Counter(identity for change in value_changes for identity in change.identities)
        clean_counts = Counter(identity for effect in effects for identity in effect.identities)
        differing = cell_counts - clean_counts if is_more else clean_counts - cell_counts
        effects = [effect for effect in effects if effect.identities & differing.keys()] or effects[-1:]
        return [effect.name for effect in effects]

    def _row_with_value(self, place: ValuePlace) -> RowDifference:
        """Return the row that contains a value: `before` is its state at the end of the clean run, `after` at the end of the
        cell."""
        clean = next(filter(place.holds, self._clean.rows.values()), None)
        row = next(filter(place.holds, self._rows.values()), None)
        changes = (change for reading in reversed(self._agent_run.readings) for change in reading.changed)
        changed_row = row or clean or next(filter(place.holds, changes), None)
        changed_row = changed_row or RowDifference(place.store, place.table, place.key, None, None)
        # a row that the cell does not change ends as it was at the reset
        after = row.after if row else (clean.before if clean else None)
        return replace(changed_row, before=clean.after if clean else changed_row.before, after=after)

    def _add_finding(self, kind: FindingKind, effect: str, times: int, row: RowDifference) -> None:
        """Add a row to the finding of this kind on an effect, which the row shows `times` times. The finding has the largest
        number of its rows if the effect is doubled, else the smallest. Its calls are those that make the effect in the clean
        runs, or all calls in flight at the change if none of them does."""
        collected = self._rows_by_finding.setdefault((kind, effect), _FindingRows(times, [], set()))
        collected.times = max(collected.times, times) if kind == "doubled" else min(collected.times, times)
        if row not in collected.rows:  # a row can differ in several columns
            collected.rows.append(row)
        identities = self._identities_of(effect)
        if kind == "lost":
            makers = {number for number, identity in self._identities.items() if identity in identities}
        else:
            makers = self._calls_at_change(row)
        collected.calls |= {number for number in makers if self._identities[number] in identities} or makers

    def _add_unknown_row(self, row: RowDifference) -> None:
        """Add the finding on a row that no clean run changes. The effect of a call is doubled if the call was done more often,
        and changes another row in the same way in the clean runs: it took the next parcel, or wrote a line with the next
        number. Otherwise the row is extra."""
        makers = {self._identities[number] for number in self._calls_at_change(row)}
        for effect in self._clean.effects:
            has_shape = any(_change_shape(clean_row) == _change_shape(row) for clean_row in effect.rows)
            if has_shape and makers & effect.identities and (times := self._times_by_journal(effect)) > 1:
                self._add_finding("doubled", effect.name, times, row)
                return
        self._add_finding("extra", "", 1, row)

    def _calls_at_change(self, row: RowDifference) -> set[int]:
        """Return the numbers of the calls that were in flight when a row changed."""
        return {number for reading in self._readings_by_row.get(place_of(row), ()) for number in reading.calls}

    # Rows that were added.

    def _compare_added(self) -> None:
        """Add the findings on rows that were added, table by table."""
        cell_rows = defaultdict[tuple[str, str], list[RowDifference]](list)
        first_changes = {place: readings[0].started for place, readings in self._readings_by_row.items()}
        for place in sorted(self._rows, key=lambda place: first_changes.get(place, 0.0)):
            if self._rows[place].before is None and place[1] != SEQUENCES:
                cell_rows[place[:2]].append(self._rows[place])
        clean_rows = defaultdict[tuple[str, str], list[RowDifference]](list)
        for place, row in self._clean.rows.items():
            if row.before is None and place[1] != SEQUENCES:
                clean_rows[place[:2]].append(row)
        for table in dict.fromkeys((*clean_rows, *cell_rows)):
            self._compare_table(clean_rows[table], cell_rows[table])

    def _compare_table(self, clean: list[RowDifference], rows: list[RowDifference]) -> None:
        """Add the findings on the rows that were added to a table: `clean` are the rows of the clean runs, `rows` those of the
        cell."""
        missing = {place_of(row): row for row in clean}
        clean_by_full_key = defaultdict[str, list[RowDifference]](list)
        versions_by_content = defaultdict[str, list[_RowVersion]](list)
        for row in clean:
            clean_by_full_key[self._matcher.full_key(row, self._matcher.clean_rows_by_key)].append(row)
            for index, (_, state) in enumerate(self._effects_by_row.get(place_of(row), ())):
                versions_by_content[self._matcher.content_key(state)].append(_RowVersion(row, index, state))
        unmatched = list[RowDifference]()
        for row in rows:
            if equal_rows := clean_by_full_key[self._matcher.full_key(row, self._matcher.rows_by_key)]:
                del missing[place_of(equal_rows.pop(0))]
            else:
                unmatched.append(row)
        copies = Counter[tuple[str, str]]()
        for is_strict in (True, False):  # first the rows that equal a clean row, at its end or before a later effect on it
            unmatched = [
                row
                for row in unmatched
                if not self._match_clean_row(row, versions_by_content[self._matcher.content_key(row)], missing, is_strict)
            ]
        for row in unmatched:
            self._classify_unmatched(row, versions_by_content[self._matcher.content_key(row)], missing, copies)
        for row in missing.values():
            self._add_finding("lost", self._maker_of(row), 0, replace(row, before=row.after, after=None))

    def _match_clean_row(
        self, row: RowDifference, versions: Sequence[_RowVersion], missing: dict[RowPlace, RowDifference], is_strict: bool
    ) -> bool:
        """Return whether a row matches a missing clean row. If so, remove this clean row from `missing`, and add a finding for
        each later effect on the clean row that the row of the cell lacks.

        Args:
            row: An added row of the cell.
            versions: The versions of clean rows with the same content.
            missing: The clean rows that no row of the cell has matched.
            is_strict: Whether a match by references to other rows does not count. A number can equal another row's key by
                chance.
        """
        for version in sorted(versions, key=lambda version: -self._matcher.count_equal_columns(version.state, row)):
            place = place_of(version.row)
            is_by_chance = is_strict and self._matcher.differ_by_references(version.state, row)
            if place in missing and not is_by_chance and self._equals_version(version, row):
                del missing[place]
                for lost_effect, _ in self._effects_by_row[place][version.effect_index + 1 :]:
                    self._add_finding("lost", lost_effect.name, 0, replace(row, before=version.row.after))
                return True
        return False

    def _classify_unmatched(
        self,
        row: RowDifference,
        versions: Sequence[_RowVersion],
        missing: dict[RowPlace, RowDifference],
        copies: Counter[tuple[str, str]],
    ) -> None:
        """Add the finding on a row that matches no clean row: a second copy of a row, a row with another value, or neither.

        Args:
            row: An added row of the cell.
            versions: The versions of clean rows with the same content.
            missing: The clean rows that no row of the cell has matched.
            copies: The number of second copies until now, by effect and content.
        """
        originals = [version for version in versions if self._equals_version(version, row)]
        originals.sort(key=lambda version: self._matcher.differ_by_references(version.state, row))
        if original := max(originals, key=lambda version: self._matcher.count_equal_columns(version.state, row), default=None):
            maker = self._effects_by_row[place_of(original.row)][0].effect
            content = self._matcher.content_key(original.state)
            added = [added_row for added_row in maker.rows if added_row.before is None and added_row.table == row.table]
            rows_per_effect = sum(self._matcher.content_key(added_row) == content for added_row in added)
            copies[maker.name, content] += 1
            self._add_finding("doubled", maker.name, 1 + ceil(copies[maker.name, content] / max(1, rows_per_effect)), row)
            return
        if clean_row := missing.pop(place_of(row), None):  # the same key with other values
            self._compare_cells(replace(row, before=clean_row.after), {}, self._effects_by_row.get(place_of(row), ()))
            return
        most_similar = max(missing.values(), key=lambda clean: self._matcher.count_equal_columns(clean, row), default=None)
        # with another key, a clean row of which at least half of the columns are equal counts as the same row
        if most_similar and 2 * self._matcher.count_equal_columns(most_similar, row) >= len(columns_of(most_similar)):
            del missing[place_of(most_similar)]
            self._add_finding("changed", self._maker_of(most_similar), 1, replace(row, before=most_similar.after))
        else:
            self._add_unknown_row(row)

    def _maker_of(self, row: RowDifference) -> str:
        """Return the name of the effect that added a clean row."""
        effects = self._effects_by_row.get(place_of(row))
        return effects[0].effect.name if effects else ""

    def _equals_version(self, version: _RowVersion, row: RowDifference) -> bool:
        """Return whether a row equals a version of a clean row, with the same key or with another generated key."""
        if not self._matcher.equal_without_keys(version.state, row):
            return False
        has_equal_key = self._matcher.have_equal_keys(version.state, row)
        return has_equal_key or not self._is_key_named_by_call(row, self._maker_of(version.row))

    def _is_key_named_by_call(self, row: RowDifference, effect: str) -> bool:
        """Return whether the calls that made a row have its key in their arguments: the row is then no second copy with another
        key. A call that equals the effect's call cannot have two keys in its arguments."""
        identities = self._identities_of(effect)
        makers = [number for number in self._calls_at_change(row) if number in self._calls]
        if any(self._identities[number] in identities for number in makers):
            return False
        cells = columns_of(row)
        key_values = [str(cells[name]) for name in key_columns(row)]
        for number in makers:
            arguments = self._agent_run.texts.get(self._calls[number].arguments, "")
            if all(value in arguments for value in key_values):
                return True
        return False

    # Rows that existed before.

    def _compare_existing(self) -> None:
        """Add the findings on rows that existed at the reset."""
        for place in dict.fromkeys((*self._clean.rows, *self._rows)):
            clean, row = self._clean.rows.get(place), self._rows.get(place)
            initial = (clean or row or _NO_ROW).before
            if initial is None or place[1] == SEQUENCES:
                continue
            clean_state = clean.after if clean else initial
            state = row.after if row else initial
            difference = RowDifference(*place, clean_state, state)
            effects = self._effects_by_row.get(place, ())
            if clean_state is None or state is None:
                if (clean_state is None) != (state is None):
                    self._compare_removed(difference, initial, effects)
            else:
                self._compare_cells(difference, initial, effects)

    def _compare_removed(self, row: RowDifference, initial: Row, effects: Sequence[_EffectOnRow]) -> None:
        """Add the finding on a row that was removed only in the cell or only in the clean run: `before` is its state at the end
        of the clean run, `after` at the end of the cell."""
        last_effect = effects[-1].effect.name if effects else ""
        # first: the cell removed a row that no clean run touches; second: the row stopped at an earlier state
        if row.after is None and not effects:
            self._add_unknown_row(row)
        elif row.after is not None and (row.after == initial or any(row.after == state.after for _, state in effects)):
            self._add_finding("lost", last_effect, 0, row)
        else:
            self._add_finding("changed", last_effect, 1, row)

    def _compare_cells(self, row: RowDifference, initial: Row, effects: Sequence[_EffectOnRow]) -> None:
        """Add the findings on the values of a row, column by column and part by part.

        Args:
            row: The row: `before` at the end of the clean run, `after` at the end of the cell.
            initial: The row at the reset.
            effects: The effects of the clean run on the row.
        """
        clean_state, state = row.before or {}, row.after or {}
        names = self._compared_columns(row) if _is_file(row) else {**clean_state, **state}
        differing = [name for name in names if clean_state.get(name) != state.get(name) and not self._matcher.varies(row, name)]
        for name in differing:
            if self._matcher.refer_to_equal_rows(clean_state.get(name), state.get(name)):
                continue
            if self._expected.is_overwritten(place_of(row), name, state.get(name)):
                self._add_finding("overwritten", effects[-1].effect.name if effects else "", 1, row)
                continue
            states = parts_of_column(name, [initial, *(row_then.after for _, row_then in effects), clean_state, state])
            for part in dict.fromkeys((*states[-2], *states[-1])):  # the parts at the end of the clean run and of the cell
                default = 0 if part.is_item else None  # of an item of a list the value is how often the list has it
                if states[-2].get(part, default) != states[-1].get(part, default):
                    self._compare_part(row, part, states, [effect for effect, _ in effects])

    def _compare_part(
        self, row: RowDifference, part: CellPart, states: Sequence[Mapping[CellPart, Cell]], effects: Sequence[CleanEffect]
    ) -> None:
        """Add the findings on a part of a value that differs from the clean run: how often each effect was applied to it.

        Args:
            row: The row that contains the value, for the findings.
            part: The part of the value.
            states: The parts of the column at the reset, after each effect of the clean run, at its end, and in the cell.
            effects: The effects on the row.
        """
        clean_value, value = (state.get(part, 0 if part.is_item else None) for state in states[-2:])
        clean_values = [state.get(part, 0 if part.is_item else None) for state in states[:-2]]
        # the effects that change the part in the clean run, each with the part's value before and after
        steps = [
            (effect, before, after)
            for effect, before, after in zip(effects, clean_values, clean_values[1:], strict=False)
            if before != after
        ]
        if not steps:  # no effect changes the part: blame the last effect on another part of the value
            changing_effects = [
                effect for effect, before, after in zip(effects, states, states[1:], strict=False) if before != after
            ]
            if changing_effects:
                self._add_finding("changed", changing_effects[-1].name, 1, row)
            else:
                self._add_unknown_row(row)
            return
        empty: Cell = "" if isinstance(clean_value, str) else 0
        initial = clean_values[0] if part in states[0] else empty
        likely = [self._times_by_journal(effect) for effect, _, _ in steps]
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
            # equal sizes do not show equal content: the digest is compared then
            if None not in cells and not self._matcher.varies(row, name) and (name != "size" or cells[0] != cells[1]):
                yield name
                return

    def _times_by_journal(self, effect: CleanEffect) -> int:
        """Return how often an effect was made according to the journal, if a clean run makes it once: 1 plus the largest
        difference from the clean runs in the times that a call with this effect was done."""
        clean_times = self._clean.counts
        return 1 + max((self._times_done[identity] - clean_times[identity] for identity in effect.identities), default=0)

    def _identities_of(self, effect: str) -> set[str]:
        """Return the identities of the calls that make an effect in the clean runs."""
        effects = [clean_effect for clean_effect in self._clean.effects if clean_effect.name == effect]
        return {identity for clean_effect in effects for identity in clean_effect.identities}


def _is_file(row: RowDifference) -> bool:
    """Return whether a row is a file."""
    return not row.table and "digest" in (row.after or {})


def _table_of(row: RowDifference) -> tuple[str, str]:
    """Return the store and the table of a row; a file counts as its own table."""
    return row.store, row.table or row.key


def _change_shape(row: RowDifference) -> tuple[object, ...]:
    """Return how a row changed, without its key and values: its table, whether it was added or removed, and the columns that
    changed."""
    before, after = row.before or {}, row.after or {}
    changed = frozenset(name for name in {**before, **after} if before.get(name) != after.get(name))
    return row.store, row.table, row.before is None, row.after is None, changed if row.before and row.after else None


_NO_ROW = RowDifference("", "", "", None, None)


def _effects_by_row(effects: Sequence[CleanEffect]) -> Mapping[RowPlace, Sequence[_EffectOnRow]]:
    """Return the effects on each row, in their order."""
    effects_by_row = defaultdict[RowPlace, list[_EffectOnRow]](list)
    for effect in effects:
        for row in effect.rows:
            effects_by_row[place_of(row)].append(_EffectOnRow(effect, row))
    return effects_by_row
