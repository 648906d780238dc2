"""The journal of one course of the agent: each call with its times, and the readings of the stores between calls."""

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

LONGEST = 2**20
"""Characters of arguments or of an answer that are kept."""
MOST_NOTICES = 200
MOST_PAIRS = 10_000
"""The most pairs of calls, or of rows, of which the likest are sought. Beyond that they are taken in their order."""
Item = TypeVar("Item")
RowPlace = tuple[str, str, str]
"""A row's store, table and key."""


class Readable(Protocol):
    """All stores together (`bench.probe.run.witness.stores.Stores`). Two readings that are `settle` seconds apart must be
    equal."""

    settle: float

    async def snapshot(self) -> Callable[[], Awaitable[StoreReading]]:
        """Begin a reading, and return the function that ends it."""

    async def read(self) -> StoreReading:
        """Return one reading."""

    async def change(self, name: str, sql: str) -> None:
        """Change the copy of a store by a statement. Raises ConfigError."""

    async def reading(self) -> StoreReading:
        """Return a reading that is equal to the one before it."""


@dataclass(eq=False)
class JournaledCall:
    """A call, its arguments as text, its identity, and the times of its events.

    identity  the same for calls of one tool with the same arguments, apart from what is volatile; `nth` counts them, from 1
    raw       the answer's bytes, b"" if they are too many
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
    """The calls of one course, in the order of their arrival, and the readings of the stores. Seconds count from `start`.

    Args:
        tidy: Returns arguments or an answer as they may be kept: without what is hidden or secret.
        identify: Returns which call this is, of its door, its tool and its tidy arguments.
        stores: What is read.
    """

    def __init__(
        self,
        tidy: Callable[[JsonValue], JsonValue],
        identify: Callable[[str, str, JsonValue], str],
        stores: Readable,
    ):
        self.calls: list[JournaledCall] = []
        self.readings: list[StoresRead] = []
        self.notices: list[GatewayNoticed] = []
        self.start = monotonic()
        self._tidy, self._identify, self._stores = tidy, identify, stores
        self._last = StoreReading("", ())
        self._times = Counter[str]()
        self._since = set[int]()
        self._owed: tuple[int, ...] = ()
        """The calls that landed last, until it is known that nothing changes any more."""
        self._watching: asyncio.Task[None] | None = None
        self._is_read: asyncio.Future[None]

    @property
    def settle(self) -> float:
        """Seconds between two readings that must be equal."""
        return self._stores.settle

    def now(self) -> float:
        return monotonic() - self.start

    def begin(self, first: StoreReading) -> None:
        """Start the clock. `first` is the reading of the stores after their reset."""
        self.start, self._last = monotonic(), first

    def arrive(self, call: LiveCall) -> JournaledCall:
        arguments = self._tidy(call.arguments)
        identity = self._identify(call.door, call.tool, arguments)
        self._times[identity] += call.continues is None
        entry = JournaledCall(call, text_of(arguments), identity, self._times[identity], self.now())
        self.calls.append(entry)
        return entry

    def answer(self, entry: JournaledCall) -> None:
        entry.answered, entry.answer = self.now(), text_of(self._tidy(entry.call.answer))

    def notice(self, door: str, what: str) -> None:
        if len(self.notices) < MOST_NOTICES:
            self.notices.append(GatewayNoticed(door, str(self._tidy(what)), self.now()))

    def flies(self, call: LiveCall) -> None:
        """Note that a call is in flight: it may have caused what the next reading shows."""
        self._since.add(call.number)

    async def land(self) -> None:
        """Take a snapshot of the stores after a call, whose answer need not wait until the snapshot is read. The stores are
        watched from then on until they have settled. Until then changes are attributed to this call, too."""
        await self.rest(until_settled=False)
        calls, loop = tuple(sorted(self._since)), asyncio.get_running_loop()
        self._since.clear()
        taken, self._is_read, self._owed = loop.create_future(), loop.create_future(), calls
        self._watching = watching = asyncio.create_task(self._watch(calls, taken, self._is_read))
        await asyncio.wait({taken})
        if watching.done() and not watching.cancelled():
            watching.result()

    async def _watch(self, calls: tuple[int, ...], taken: asyncio.Future[None], is_read: asyncio.Future[None]) -> None:
        started = self.now()
        try:
            reading = await self._stores.snapshot()
            taken.set_result(None)
            self._note(started, calls, await reading())
        finally:
            for future in (taken, is_read):
                if not future.done():
                    future.set_result(None)
        last = ""
        while last != self._last.digest:
            last = self._last.digest
            await asyncio.sleep(self.settle)
            started, later = self.now(), await self._stores.read()
            if later.digest != last:
                self._note(started, calls, later)
        self._owed = ()

    async def rest(self, *, until_settled: bool) -> None:
        """Wait until the last snapshot is read, or until the stores have settled, and then watch them no longer."""
        if watching := self._watching:
            await asyncio.wait({watching if until_settled else self._is_read})
            watching.cancel()
            await asyncio.wait({watching})
            self._watching = None
            if not watching.cancelled():
                watching.result()

    async def look(self, *, until_settled: bool = False) -> None:
        """Read the stores before a call is passed on, if no other call is in flight. An unchanged state leaves no entry."""
        await self.rest(until_settled=until_settled)
        started, reading = self.now(), await self._stores.read()
        if reading.digest != self._last.digest:
            self._note(started, tuple(sorted(self._since)) or self._owed, reading)
        self._since.clear()
        self._owed = ()

    async def read(self) -> None:
        """Read the stores until they have settled. Changes since the last reading are attributed to the calls that were in
        flight since then, or landed last and may not have settled."""
        await self.rest(until_settled=False)
        started, calls = self.now(), tuple(sorted(self._since))
        self._since.clear()
        reading = await self._stores.reading()
        changed = reading.digest != self._last.digest
        self._note(started, calls or (self._owed if changed else ()), reading)
        self._owed = ()

    async def step_in(self, store: str, sql: str) -> bool:
        """Change a store as another writer does. Return whether that changed a row. Raises ConfigError."""
        await self._stores.change(store, sql)
        started, reading = self.now(), await self._stores.read()
        stepped = reading.digest != self._last.digest
        self._note(started, (), reading, other=True)
        return stepped

    def _note(self, started: float, calls: tuple[int, ...], reading: StoreReading, *, other: bool = False) -> None:
        changed = tuple(changes(self._last, reading))
        if changed or calls or reading.digest != self._last.digest or not self.readings:
            self.readings.append(StoresRead(started, reading.digest, changed, calls, reading.more, other))
        self._last = reading


def changes(former: StoreReading, later: StoreReading) -> Iterator[RowDifference]:
    """Yield the rows that differ between two readings, with the former and the present content."""
    old, new = _by_place(former), _by_place(later)
    for place in {**old, **new}:
        before = old[place].after if place in old else new[place].before
        after = new[place].after if place in new else old[place].before
        if before != after:
            yield RowDifference(*place, before, after)


def _by_place(reading: StoreReading) -> Mapping[RowPlace, RowDifference]:
    """Return the rows of a reading by their places. Rows may be named by their content: a row that went and a row that came
    then count as one changed row, if they are alike or as many rows went as came."""
    rows, nameless = dict[RowPlace, RowDifference](), defaultdict[RowPlace, list[RowDifference]](list)
    for row in reading.differences:
        named = replace(row, key=_key_of(row))
        rows[_place_of(named)] = named
        if (row.before is None or row.after is None) and (where := _content_of(row.key)) is not None:
            nameless[row.store, row.table, where].append(named)
    for alike in nameless.values():
        went, came = [row for row in alike if row.after is None], [row for row in alike if row.before is None]
        for former, later in likest(went, came, _unlikeness):
            columns = len(former.before or ())
            if len(went) == len(came) or 2 * _unlikeness(former, later) <= columns:
                del rows[_place_of(later)]
                rows[_place_of(former)] = replace(former, after=later.after)
    return rows


def _place_of(row: RowDifference) -> RowPlace:
    return row.store, row.table, row.key


def _content_of(key: str) -> str | None:
    """Return the list that holds a row which is named by its content, "" for a table; None for a row with a name."""
    match = IN_LIST.fullmatch(key)
    return match[1] if match else "" if BY_CONTENT.fullmatch(key) else None


def _unlikeness(former: RowDifference, later: RowDifference) -> int:
    before, after = former.before or {}, later.after or {}
    return sum(before.get(name) != after.get(name) for name in {**before, **after})


def likest(some: Sequence[Item], others: Sequence[Item], distance: Callable[[Item, Item], int]) -> Iterator[tuple[Item, Item]]:
    """Pair the values of two lists, the most similar pairs first."""
    if len(some) * len(others) > MOST_PAIRS:
        yield from zip(some, others, strict=False)
        return
    near = sorted(
        (distance(former, latter), abs(at - place), at, place)
        for at, former in enumerate(some)
        for place, latter in enumerate(others)
    )
    taken, given = set[int](), set[int]()
    for _, _, at, place in near:
        if at not in taken and place not in given:
            taken.add(at)
            given.add(place)
            yield some[at], others[place]


def _key_of(row: RowDifference) -> str:
    """Return the name of a row. In a table without a key this is the row's content at the reset, since the present content can
    change."""
    if row.before is None or not (match := BY_CONTENT.fullmatch(row.key)):
        return row.key
    return f"{digest_of(text_of(row.before))} {match[1]}"


def text_of(value: Any) -> str:
    """Return a JSON value as text, the same for equal values. A text that is too long ends with its digest."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… {len(text)} characters, {digest_of(text)}"
