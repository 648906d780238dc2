"""A cell that is played from a tape: calls get the recorded responses, and rows change as they did in the recording.

A call on the tape is found by its identity and by how often that call was made before. If a call is not on the tape, or a
recorded change does not fit a row, the run has *left the tape*: its cell has no verdict.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from bench.common.bounds import Many
from bench.common.digests import digest_of
from bench.probe.run.gateway.journal import JournaledCall, RowPlace, text_of
from bench.probe.run.witness.stores import Stores
from bench.record.probe_rows import SEQUENCES, Cell, RowDifference, StoreReading

Columns = dict[str, Cell] | None
REAL = int | float
OTHER_WRITER = "another writer"
"""The identity under which a tape has the rows that another writer changed."""


@dataclass(frozen=True)
class TapedCall:
    """A call on a tape.

    answer  the bytes of its response, each byte as one character; "" if there are none
    rows    the rows that the call changed
    """

    identity: str
    nth: int
    tool: str
    answer: str
    rows: Many[RowDifference] = ()


@dataclass
class PlayedTape:
    """The state while a tape is played. `left` says how the run has left the tape; "" if it has not."""

    calls: Iterable[TapedCall]
    left: str = ""
    _rows: dict[RowPlace, tuple[Columns, Columns]] = field(default_factory=dict)
    """Each row -> its columns at the reset, and its columns now; None where the row does not exist."""

    def __post_init__(self) -> None:
        self._calls = {(call.identity, call.nth): call for call in self.calls}
        for call in self.calls:
            for row in call.rows:
                before = None if row.before is None else dict(row.before)
                self._rows.setdefault((row.store, row.table, row.key), (before, before))

    def answer_to(self, entry: JournaledCall) -> bytes:
        """Return the recorded answer to a call; b"" if the call is not on the tape."""
        call = self._calls.get((entry.identity, entry.nth))
        if call is None or not call.answer:
            self._leave(f"call {entry.call.number}, {entry.call.tool}, was not made so when the tape was recorded")
            return b""
        return call.answer.encode("latin-1")

    def apply_rows(self, entry: JournaledCall) -> None:
        """Change the rows as the recorded call did."""
        self._change(self._calls.get((entry.identity, entry.nth)))

    def _change(self, call: TapedCall | None) -> None:
        """Change the rows that a recorded call changed; none if the call is not on the tape."""
        for row in call.rows if call else ():
            place = (row.store, row.table, row.key)
            first_columns, current_columns = self._rows[place]
            self._rows[place] = (first_columns, self._changed_row(current_columns, row))

    def apply_others_rows(self) -> None:
        """Change the rows as the other writer did in the recording."""
        self._change(self._calls.get((OTHER_WRITER, 1)))

    def reading(self) -> StoreReading:
        """Return the rows that differ from the state at the reset."""
        rows = [RowDifference(*place, first, current) for place, (first, current) in self._rows.items() if first != current]
        return StoreReading(digest_of(text_of([[row.store, row.table, row.key, row.after] for row in rows])), tuple(rows))

    def _changed_row(self, current: Columns, row: RowDifference) -> Columns:
        """Return a row after a recorded change; None if it is removed. If earlier calls were not made, the row can differ from
        the recording: a number then changes by the recorded difference."""
        before, after = row.before, row.after
        # the row was added or removed, is as it was when the change was recorded, or is a sequence without a value
        if before is None or after is None or current == before or (current is None and row.table == SEQUENCES):
            return None if after is None else dict(after)
        if current is None:
            self._leave(f"a row of {row.store} {row.table} is not there, which a call changed when the tape was recorded")
            return None
        changed = dict(current)
        for name, new_value in after.items():
            current_value, old_value = current.get(name), before.get(name)
            if new_value == old_value:
                continue
            if current_value == old_value:
                changed[name] = new_value
            elif isinstance(current_value, REAL) and isinstance(old_value, REAL) and isinstance(new_value, REAL):
                changed[name] = current_value + new_value - old_value
            else:
                self._leave(f"{name} of a row of {row.store} {row.table} has another value than when the tape was recorded")
        return changed

    def _leave(self, why: str) -> None:
        """Note why the run has left the tape."""
        self.left = self.left or why


class TapedStores(Stores):
    """The rows of a tape in place of real stores. The agent's memory is a real store, and is reset as usual."""

    tape = PlayedTape(())
    absent: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
    """What replaces the names of the stores that are on the tape, and their variables."""

    @property
    def replaces(self) -> Mapping[str, str]:
        return {**super().replaces, **self.absent[0]}

    @property
    def environment(self) -> Mapping[str, str]:
        return {**super().environment, **self.absent[1]}

    async def snapshot(self) -> Callable[[], Awaitable[StoreReading]]:
        current = self.tape.reading()

        async def reading() -> StoreReading:
            return current

        return reading

    async def read(self) -> StoreReading:
        return self.tape.reading()

    async def change(self, name: str, sql: str) -> None:
        del name, sql
        self.tape.apply_others_rows()

    async def reading(self) -> StoreReading:
        return self.tape.reading()
