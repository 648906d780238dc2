"""Compares the rows that existed before the agent's run, as they are after a cell and after the clean runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.probe.run.cell_findings import CellFindings, EffectOnRow
from bench.probe.run.cell_parts import CellPart, parts_of_column
from bench.probe.run.clean import CleanEffect
from bench.probe.run.meanwhile import ExpectedWithStatement
from bench.probe.run.row_matching import RowMatcher
from bench.probe.run.times import effect_counts
from bench.probe.run.volatile import ChangedRows, place_of
from bench.record.probe_rows import SEQUENCES, Cell, Row, RowDifference

_NO_ROW = RowDifference("", "", "", None, None)


class ExistingRows:
    """Compares rows that existed at the reset.

    Args:
        expected: What is expected after another writer's statement.
        rows: The rows that the cell changes.
        matcher: Decides when two values are equal.
        findings: The findings are added here.
    """

    def __init__(self, expected: ExpectedWithStatement, rows: ChangedRows, matcher: RowMatcher, findings: CellFindings):
        self._expected, self._clean_rows, self._rows = expected, expected.clean.rows, rows
        self._matcher, self._findings = matcher, findings

    def compare(self) -> None:
        """Add the findings on rows that existed at the reset."""
        for place in dict.fromkeys((*self._clean_rows, *self._rows)):
            clean, row = self._clean_rows.get(place), self._rows.get(place)
            initial = (clean or row or _NO_ROW).before
            if initial is None or place[1] == SEQUENCES:
                continue
            clean_state = clean.after if clean else initial
            state = row.after if row else initial
            difference = RowDifference(*place, clean_state, state)
            effects = self._findings.effects_on(difference)
            if clean_state is None or state is None:
                if (clean_state is None) != (state is None):
                    self._compare_removed(difference, initial, effects)
            else:
                self.compare_values(difference, initial, effects)

    def _compare_removed(self, row: RowDifference, initial: Row, effects: Sequence[EffectOnRow]) -> None:
        """Add the finding on a row that was removed only in the cell or only in the clean run: `before` is its state at the end
        of the clean run, `after` at the end of the cell."""
        last_effect = effects[-1].effect.name if effects else ""
        # first: the cell removed a row that no clean run touches; second: the row stopped at an earlier state
        if row.after is None and not effects:
            self._findings.add_unknown_row(row)
        elif row.after is not None and (row.after == initial or any(row.after == state.after for _, state in effects)):
            self._findings.add("lost", last_effect, 0, row)
        else:
            self._findings.add("changed", last_effect, 1, row)

    def compare_values(self, row: RowDifference, initial: Row, effects: Sequence[EffectOnRow]) -> None:
        """Add the findings on the values of a row, column by column and part by part.

        Args:
            row: The row: `before` at the end of the clean run, `after` at the end of the cell.
            initial: The row at the reset.
            effects: The effects of the clean run on the row.
        """
        clean_state, state = row.before or {}, row.after or {}
        for name in self._matcher.compared_columns(row):
            if clean_state.get(name) == state.get(name) or self._matcher.refer_to_equal_rows(
                clean_state.get(name), state.get(name)
            ):
                continue
            if self._expected.is_overwritten(place_of(row), name, state.get(name)):
                self._findings.add("overwritten", effects[-1].effect.name if effects else "", 1, row)
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
                self._findings.add("changed", changing_effects[-1].name, 1, row)
            else:
                self._findings.add_unknown_row(row)
            return
        empty: Cell = "" if isinstance(clean_value, str) else 0
        initial = clean_values[0] if part in states[0] else empty
        likely = [self._findings.times_by_journal(effect) for effect, _, _ in steps]
        times = effect_counts([(before, after) for _, before, after in steps], initial, clean_value, value, likely)
        if times is None:
            self._findings.add("changed", steps[-1][0].name, 1, row)
            return
        for (effect, _, _), count in zip(steps, times, strict=True):
            if count != 1:
                self._findings.add("doubled" if count > 1 else "lost", effect.name, count, row)
