"""Compares the rows at the end of a cell with the rows at the end of the clean runs, effect by effect."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bench.probe.points import point_of
from bench.probe.run.added_rows import AddedRows
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.cell_findings import CellFindings
from bench.probe.run.cell_parts import parts_of_column
from bench.probe.run.clean import Clean
from bench.probe.run.existing_rows import ExistingRows
from bench.probe.run.meanwhile import ExpectedWithStatement
from bench.probe.run.row_matching import RowMatcher, is_file
from bench.probe.run.times import added_part, is_time
from bench.probe.run.varying import FILE_CONTENT, ValueChange, ValueChanges, ValuePlace, value_changes
from bench.probe.run.volatile import StoreColumn
from bench.record.probe_events import CellFinding, Culprit
from bench.record.probe_rows import RowDifference


class CellComparison:
    """Compares the rows of a cell with the rows of the clean runs.

    Args:
        clean: What the clean runs show.
        agent_run: The run of the cell.
        point: The point of the fault; None for a run without a fault.

    unsure   once `findings` has ended: the differences, in words, that may or may not be another effect
    """

    def __init__(self, clean: Clean, agent_run: AgentRun, point: str | None):
        others_rows = [row for reading in agent_run.readings if reading.other for row in reading.changed]
        expected = ExpectedWithStatement.of(clean, others_rows)
        self._clean = clean = expected.clean
        self._agent_run, self._point = agent_run, point_of(point)
        self._rows = agent_run.rows
        self._matcher = RowMatcher(clean.rows, self._rows, clean.rows_vary)
        self._findings = CellFindings(clean, agent_run)
        self._existing = ExistingRows(expected, self._rows, self._matcher, self._findings)
        self._added = AddedRows(clean, agent_run, self._matcher, self._existing, self._findings)
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
        self._added.compare()
        self._existing.compare()
        self._compare_varying()
        for kind, effect, collected in self._findings:
            if kind == "doubled" and (harmless_repeat := self._repeated_counter_or_audit(effect, collected.rows)):
                self.unsure.append(harmless_repeat)
                continue
            # a tool that gets one call twice can double an effect; it can lose one only if a later effect came in between
            is_tool_fault = self._point.by_tool and (kind != "lost" or self._point.before == "again")
            culprit: Culprit = "tool" if is_tool_fault else "agent"
            yield CellFinding(kind, effect, collected.times, tuple(collected.rows), tuple(sorted(collected.calls)), culprit)

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
                    self._findings.add("lost", effect, 0, row)
                    continue
                self._repeated_varying[effect].add(place.store_column)
                clean_effects = [clean_effect for clean_effect in self._clean.effects if clean_effect.name == effect]
                most_by_journal = max(map(self._findings.times_by_journal, clean_effects), default=0)
                count = 1 + times - clean_times  # the effect itself, and each further change of the value
                if most_by_journal > 1:
                    count = min(count, most_by_journal)
                self._findings.add("doubled", effect, count, row)

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
            for name in self._matcher.compared_columns(row):
                before, after = parts_of_column(name, [row_before, row_after])
                for part, value in after.items():
                    value_before = before.get(part, 0 if part.path or name not in row_before else None)
                    added = added_part("" if is_file(row) and name not in row_before else value_before, value)
                    is_set = isinstance(value, int | float) and is_time(value)
                    if added and not is_set and (is_file(row) or not isinstance(added, str)):
                        yield (*_table_of(row), part.name), 0.0 if part.is_item or isinstance(added, str) else float(added)


def _table_of(row: RowDifference) -> tuple[str, str]:
    """Return the store and the table of a row; a file counts as its own table."""
    return row.store, row.table or row.key
