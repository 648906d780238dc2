"""Compares the rows that were added in a cell with the rows that were added in the clean runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from bench.probe.run.agent_run import AgentRun
from bench.probe.run.cell_findings import CellFindings
from bench.probe.run.clean import Clean
from bench.probe.run.existing_rows import ExistingRows
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.row_matching import RowMatcher
from bench.probe.run.volatile import columns_of, key_columns, place_of
from bench.record.probe_rows import SEQUENCES, RowDifference


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


class AddedRows:
    """Compares added rows, table by table.

    Args:
        clean: What the clean runs show.
        agent_run: The run of the cell.
        matcher: Decides when two rows are equal.
        existing: Compares a row that has a clean row's key, value by value.
        findings: The findings are added here.
    """

    def __init__(self, clean: Clean, agent_run: AgentRun, matcher: RowMatcher, existing: ExistingRows, findings: CellFindings):
        self._clean, self._agent_run, self._matcher = clean, agent_run, matcher
        self._existing, self._findings = existing, findings
        self._calls = {call.number: call for call in agent_run.calls}

    def compare(self) -> None:
        """Add the findings on rows that were added, table by table."""
        cell_rows = defaultdict[tuple[str, str], list[RowDifference]](list)
        rows = self._agent_run.rows
        first_changes = {place: readings[0].started for place, readings in self._agent_run.readings_by_row().items()}
        for place in sorted(rows, key=lambda place: first_changes.get(place, 0.0)):
            if rows[place].before is None and place[1] != SEQUENCES:
                cell_rows[place[:2]].append(rows[place])
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
            for index, (_, state) in enumerate(self._findings.effects_on(row)):
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
            self._findings.add("lost", self._findings.maker_of(row), 0, replace(row, before=row.after, after=None))

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
                for lost_effect, _ in self._findings.effects_on(version.row)[version.effect_index + 1 :]:
                    self._findings.add("lost", lost_effect.name, 0, replace(row, before=version.row.after))
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
            maker = self._findings.effects_on(original.row)[0].effect
            content = self._matcher.content_key(original.state)
            added = [added_row for added_row in maker.rows if added_row.before is None and added_row.table == row.table]
            rows_per_effect = sum(self._matcher.content_key(added_row) == content for added_row in added)
            copies[maker.name, content] += 1
            self._findings.add("doubled", maker.name, 1 + ceil(copies[maker.name, content] / max(1, rows_per_effect)), row)
            return
        if clean_row := missing.pop(place_of(row), None):  # the same key with other values
            self._existing.compare_values(replace(row, before=clean_row.after), {}, self._findings.effects_on(row))
            return
        most_similar = max(missing.values(), key=lambda clean: self._matcher.count_equal_columns(clean, row), default=None)
        # with another key, a clean row of which at least half of the columns are equal counts as the same row
        if most_similar and 2 * self._matcher.count_equal_columns(most_similar, row) >= len(columns_of(most_similar)):
            del missing[place_of(most_similar)]
            self._findings.add("changed", self._findings.maker_of(most_similar), 1, replace(row, before=most_similar.after))
        else:
            self._findings.add_unknown_row(row)

    def _equals_version(self, version: _RowVersion, row: RowDifference) -> bool:
        """Return whether a row equals a version of a clean row, with the same key or with another generated key."""
        if not self._matcher.equal_without_keys(version.state, row):
            return False
        has_equal_key = self._matcher.have_equal_keys(version.state, row)
        return has_equal_key or not self._is_key_named_by_call(row, self._findings.maker_of(version.row))

    def _is_key_named_by_call(self, row: RowDifference, effect: str) -> bool:
        """Return whether the calls that made a row have its key in their arguments: the row is then no second copy with another
        key. A call that equals the effect's call cannot have two keys in its arguments."""
        identities = self._findings.identities_of(effect)
        makers = [number for number in self._findings.calls_at_change(row) if number in self._calls]
        if any(self._findings.identities[number] in identities for number in makers):
            return False
        cells = columns_of(row)
        key_values = [str(cells[name]) for name in key_columns(row)]
        for number in makers:
            arguments = self._agent_run.texts.get(self._calls[number].arguments, "")
            if all(value in arguments for value in key_values):
                return True
        return False
