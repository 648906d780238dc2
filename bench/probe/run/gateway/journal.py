"""The journal of one run of the agent: each call with its times, and the readings of the stores between calls."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Protocol, TypeVar

from pydantic import JsonValue

from bench.common.digests import digest_of
from bench.probe.run.gateway.gate import LiveCall
from bench.record.probe_events import GatewayNoticed, StoresRead, Went
from bench.record.probe_rows import BY_CONTENT, IN_LIST, RowDifference, StoreReading

MAX_TEXT_CHARS = 2**20
"""Characters of arguments or of a response that are kept."""
MAX_NOTICES = 200
MAX_PAIRS = 10_000
"""The most pairs of calls, or of rows, whose similarity is compared. Longer lists are paired in their order."""
Item = TypeVar("Item")
RowPlace = tuple[str, str, str]
"""A row's store, table and key."""


class ReadableStores(Protocol):
    """What the journal needs of the stores (`bench.probe.run.witness.stores.Stores`).

    settle  seconds between two readings that must be equal before the stores count as settled
    """

    settle: float

    async def snapshot(self) -> Callable[[], Awaitable[StoreReading]]:
        """Begin a reading, and return the function that completes it."""

    async def read(self) -> StoreReading:
        """Return one reading."""

    async def change(self, name: str, sql: str) -> None:
        """Execute a statement on the copy of a store. Raises ConfigError."""

    async def reading(self) -> StoreReading:
        """Read until two readings `settle` apart are equal, and return the last."""


@dataclass(eq=False)
class JournaledCall:
    """A call, its arguments as text, its identity, and the times of its events.

    identity         equal for calls of one tool with the same arguments, apart from values that vary
    nth              the number of this call among the calls with its identity, from 1
    given_otherwise  whether the agent got something other than the server's response
    went             how the client's wait for a held response ended
    raw              the bytes of the response; b"" if they are too many
    """

    call: LiveCall
    arguments: str
    identity: str
    nth: int
    arrived: float
    passed_on: float | None = None
    answered: float | None = None
    given: float | None = None
    answer: str | None = None
    point: str | None = None
    given_otherwise: bool = False
    went: Went = ""
    raw: bytes = b""

    @property
    def is_done(self) -> bool:
        """Whether the server did the call, according to its answer."""
        return self.passed_on is not None and self.answered is not None and not self.call.failed


class Journal:
    """The calls of one run, in the order of their arrival, and the readings of the stores. Times are seconds since `start`.

    Args:
        redact: Removes hidden and secret values from arguments or a response.
        identify: Returns the identity of a call from its door, its tool and its redacted arguments.
        stores: The stores that are read.
    """

    def __init__(
        self, redact: Callable[[JsonValue], JsonValue], identify: Callable[[str, str, JsonValue], str], stores: ReadableStores
    ):
        self.calls: list[JournaledCall] = []
        self.readings: list[StoresRead] = []
        self.notices: list[GatewayNoticed] = []
        self.start = monotonic()
        self._redact, self._identify, self._stores = redact, identify, stores
        self._last_reading = StoreReading("", ())
        self._identity_counts = Counter[str]()
        self._calls_since_reading = set[int]()
        self._unsettled_calls: tuple[int, ...] = ()
        """The numbers of the last calls that ended, while the stores have not settled."""
        self._watching: asyncio.Task[None] | None = None
        self._is_read: asyncio.Future[None]

    @property
    def settle(self) -> float:
        """Seconds between two readings that must be equal."""
        return self._stores.settle

    def now(self) -> float:
        """Return the seconds since the start."""
        return monotonic() - self.start

    def begin(self, first: StoreReading) -> None:
        """Start the clock. `first` is the reading of the stores after their reset."""
        self.start, self._last_reading = monotonic(), first

    def arrive(self, call: LiveCall) -> JournaledCall:
        """Add a call that has arrived, and return its entry."""
        arguments = self._redact(call.arguments)
        identity = self._identify(call.door, call.tool, arguments)
        self._identity_counts[identity] += call.continues is None
        entry = JournaledCall(call, text_of(arguments), identity, self._identity_counts[identity], self.now())
        self.calls.append(entry)
        return entry

    def answer(self, entry: JournaledCall) -> None:
        """Record the response of a call."""
        entry.answered, entry.answer = self.now(), text_of(self._redact(entry.call.answer))

    def notice(self, door: str, message: str) -> None:
        """Record something that belongs to no call, up to a bound."""
        if len(self.notices) < MAX_NOTICES:
            self.notices.append(GatewayNoticed(door, str(self._redact(message)), self.now()))

    def note_in_flight(self, call: LiveCall) -> None:
        """Note that a call is in flight: the changes in the next reading may be its effect."""
        self._calls_since_reading.add(call.number)

    async def note_landed(self) -> None:
        """Take a snapshot of the stores after a call. The call's response need not wait until the snapshot is read. A task then
        reads the stores until two readings are equal, and changes until then are attributed to this call too."""
        await self.stop_watching(until_settled=False)
        calls, loop = tuple(sorted(self._calls_since_reading)), asyncio.get_running_loop()
        self._calls_since_reading.clear()
        snapshot_taken, self._is_read, self._unsettled_calls = loop.create_future(), loop.create_future(), calls
        self._watching = watching = asyncio.create_task(self._watch(calls, snapshot_taken, self._is_read))
        await asyncio.wait({snapshot_taken})
        if watching.done() and not watching.cancelled():
            watching.result()

    async def _watch(self, calls: tuple[int, ...], snapshot_taken: asyncio.Future[None], is_read: asyncio.Future[None]) -> None:
        """Complete a snapshot, then read the stores until two readings are equal."""
        started = self.now()
        try:
            reading = await self._stores.snapshot()
            snapshot_taken.set_result(None)
            self._record_reading(started, calls, await reading())
        finally:
            for future in (snapshot_taken, is_read):
                if not future.done():
                    future.set_result(None)
        last_digest = ""
        while last_digest != self._last_reading.digest:
            last_digest = self._last_reading.digest
            await asyncio.sleep(self.settle)
            started, reading_after = self.now(), await self._stores.read()
            if reading_after.digest != last_digest:
                self._record_reading(started, calls, reading_after)
        self._unsettled_calls = ()

    async def stop_watching(self, *, until_settled: bool) -> None:
        """Wait until the last snapshot is read, or if `until_settled` until the stores have settled, and stop reading them."""
        if watching := self._watching:
            await asyncio.wait({watching if until_settled else self._is_read})
            watching.cancel()
            await asyncio.wait({watching})
            self._watching = None
            if not watching.cancelled():
                watching.result()

    async def read_before_call(self, *, until_settled: bool = False) -> None:
        """Read the stores before a call is forwarded, if no other call is in flight. An unchanged state is not recorded."""
        await self.stop_watching(until_settled=until_settled)
        started, reading = self.now(), await self._stores.read()
        if reading.digest != self._last_reading.digest:
            self._record_reading(started, tuple(sorted(self._calls_since_reading)) or self._unsettled_calls, reading)
        self._calls_since_reading.clear()
        self._unsettled_calls = ()

    async def read(self) -> None:
        """Read the stores until they have settled. Changes since the last reading are attributed to the calls in flight
        since then, or to the last calls if the stores had not settled after them."""
        await self.stop_watching(until_settled=False)
        started, calls = self.now(), tuple(sorted(self._calls_since_reading))
        self._calls_since_reading.clear()
        reading = await self._stores.reading()
        has_changed = reading.digest != self._last_reading.digest
        self._record_reading(started, calls or (self._unsettled_calls if has_changed else ()), reading)
        self._unsettled_calls = ()

    async def run_others_statement(self, store: str, sql: str) -> bool:
        """Execute another writer's statement. Return whether it changed a row. Raises ConfigError."""
        await self._stores.change(store, sql)
        started, reading = self.now(), await self._stores.read()
        has_changed = reading.digest != self._last_reading.digest
        self._record_reading(started, (), reading, by_other_writer=True)
        return has_changed

    def _record_reading(
        self, started: float, calls: tuple[int, ...], reading: StoreReading, *, by_other_writer: bool = False
    ) -> None:
        """Record a reading if it differs from the last one, or belongs to a call."""
        differences = tuple(changes(self._last_reading, reading))
        if differences or calls or reading.digest != self._last_reading.digest or not self.readings:
            self.readings.append(StoresRead(started, reading.digest, differences, calls, reading.more, by_other_writer))
        self._last_reading = reading


def changes(earlier: StoreReading, later: StoreReading) -> Iterator[RowDifference]:
    """Yield the rows that differ between two readings, with their contents in both."""
    old, new = _by_place(earlier), _by_place(later)
    for place in {**old, **new}:  # in a reading that does not list a row, the row is as at the reset
        before = old[place].after if place in old else new[place].before
        after = new[place].after if place in new else old[place].before
        if before != after:
            yield RowDifference(*place, before, after)


def _by_place(reading: StoreReading) -> Mapping[RowPlace, RowDifference]:
    """Return the rows of a reading by their places. Of rows that are named by their content, a removed row and an added row
    become one changed row if they are similar, or if as many rows were removed as added."""
    rows, nameless = dict[RowPlace, RowDifference](), defaultdict[RowPlace, list[RowDifference]](list)
    for row in reading.differences:
        named_row = replace(row, key=_key_of(row))
        rows[_place_of(named_row)] = named_row
        if (row.before is None or row.after is None) and (list_name := _list_of_nameless_row(row.key)) is not None:
            nameless[row.store, row.table, list_name].append(named_row)
    for rows_of_list in nameless.values():
        removed, added = [row for row in rows_of_list if row.after is None], [row for row in rows_of_list if row.before is None]
        for removed_row, added_row in most_similar_pairs(removed, added, _count_differing_columns):
            columns = len(removed_row.before or ())
            if len(removed) == len(added) or 2 * _count_differing_columns(removed_row, added_row) <= columns:
                del rows[_place_of(added_row)]
                rows[_place_of(removed_row)] = replace(removed_row, after=added_row.after)
    return rows


def _place_of(row: RowDifference) -> RowPlace:
    """Return a row's store, table and key."""
    return row.store, row.table, row.key


def _list_of_nameless_row(key: str) -> str | None:
    """Return the list that contains a row named by its content, or "" if a table contains it; None for a row with a name."""
    if match := IN_LIST.fullmatch(key):
        return match[1]
    return "" if BY_CONTENT.fullmatch(key) else None


def _count_differing_columns(earlier: RowDifference, later: RowDifference) -> int:
    """Return the number of columns in which two rows differ."""
    before, after = earlier.before or {}, later.after or {}
    return sum(before.get(name) != after.get(name) for name in {**before, **after})


def most_similar_pairs(
    firsts: Sequence[Item], seconds: Sequence[Item], distance: Callable[[Item, Item], int]
) -> Iterator[tuple[Item, Item]]:
    """Yield pairs of values of two lists, the pair with the smallest distance first. Each value is in at most one pair."""
    if len(firsts) * len(seconds) > MAX_PAIRS:
        yield from zip(firsts, seconds, strict=False)
        return
    candidates = sorted(
        (distance(first, second), abs(first_index - second_index), first_index, second_index)
        for first_index, first in enumerate(firsts)
        for second_index, second in enumerate(seconds)
    )
    paired_firsts, paired_seconds = set[int](), set[int]()
    for _, _, first_index, second_index in candidates:
        if first_index not in paired_firsts and second_index not in paired_seconds:
            paired_firsts.add(first_index)
            paired_seconds.add(second_index)
            yield firsts[first_index], seconds[second_index]


def _key_of(row: RowDifference) -> str:
    """Return the name of a row. In a table without a key the name is the row's content at the reset, since its current
    content can change."""
    if row.before is None or not (match := BY_CONTENT.fullmatch(row.key)):
        return row.key
    return f"{digest_of(text_of(row.before))} {match[1]}"


def text_of(value: Any) -> str:
    """Return a JSON value as text; equal values have equal texts. A text that is too long is cut, and its length and digest are
    added."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}… {len(text)} characters, {digest_of(text)}"
