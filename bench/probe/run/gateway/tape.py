"""A cell that is played from a tape: calls get the recorded answers, and rows change as they did when the tape was recorded.

A call is known by its identity and by how often it was made. A call that the tape lacks, and a row that it cannot follow, have
*left the tape*: such a cell has no verdict.
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
OTHER = "another writer"
"""The identity of what is no call: the step of another writer."""


@dataclass(frozen=True)
class TapedCall:
    """A call on a tape.

    answer  the bytes of its answer, each byte a character; "" if there are none
    rows    the rows that changed when it was done
    """

    identity: str
    nth: int
    tool: str
    answer: str
    rows: Many[RowDifference] = ()


@dataclass
class PlayedTape:
    """One playing of a tape. `left` says in words which call was not on the tape; "" if every call was."""

    calls: Iterable[TapedCall]
    left: str = ""
    _rows: dict[RowPlace, tuple[Columns, Columns]] = field(default_factory=dict)
    """Of each row what stood there at the reset, and what stands there now."""

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

    def do(self, entry: JournaledCall) -> None:
        """Change the rows as the recorded call did."""
        self._change(self._calls.get((entry.identity, entry.nth)))

    def _change(self, call: TapedCall | None) -> None:
        for row in call.rows if call else ():
            place = (row.store, row.table, row.key)
            first, now = self._rows[place]
            self._rows[place] = (first, self._move(now, row))

    def step_in(self) -> None:
        """Change the rows as another writer did."""
        self._change(self._calls.get((OTHER, 1)))

    def reading(self) -> StoreReading:
        rows = [RowDifference(*place, first, now) for place, (first, now) in self._rows.items() if first != now]
        return StoreReading(digest_of(text_of([[row.store, row.table, row.key, row.after] for row in rows])), tuple(rows))

    def _move(self, now: Columns, row: RowDifference) -> Columns:
        """Return a row after a recorded change. If earlier calls were left out, a number changes by the recorded amount."""
        before, after = row.before, row.after
        if before is None or after is None or now == before or (now is None and row.table == SEQUENCES):
            return None if after is None else dict(after)
        if now is None:
            self._leave(f"a row of {row.store} {row.table} is not there, which a call changed when the tape was recorded")
            return None
        moved = dict(now)
        for name, value in after.items():
            held, old = now.get(name), before.get(name)
            if value == old:
                continue
            if held == old:
                moved[name] = value
            elif isinstance(held, int | float) and isinstance(old, int | float) and isinstance(value, int | float):
                moved[name] = held + value - old
            else:
                self._leave(f"{name} of a row of {row.store} {row.table} has another value than when the tape was recorded")
        return moved

    def _leave(self, why: str) -> None:
        self.left = self.left or why


class TapedStores(Stores):
    """The rows of a tape in place of real stores. The agent's memory is a real store and is reset as usual."""

    tape = PlayedTape(())
    absent: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
    """What stands for the names of the stores that are on the tape, and for their variables."""

    @property
    def replaces(self) -> Mapping[str, str]:
        return {**super().replaces, **self.absent[0]}

    @property
    def environment(self) -> Mapping[str, str]:
        return {**super().environment, **self.absent[1]}

    async def snapshot(self) -> Callable[[], Awaitable[StoreReading]]:
        now = self.tape.reading()

        async def reading() -> StoreReading:
            return now

        return reading

    async def read(self) -> StoreReading:
        return self.tape.reading()

    async def change(self, name: str, sql: str) -> None:
        del name, sql
        self.tape.step_in()

    async def reading(self) -> StoreReading:
        return self.tape.reading()
