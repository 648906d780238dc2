"""Send the recorded tool calls of other people to the user's own MCP server, which works on copies of its store.

What the server answers is compared with what was recorded, and its store at the end with the store after the calls that the
task's authors name as right. Then each effect is delivered twice, lost, or done anew after a restart from nothing, with the
recorded suffix behind it: nobody knows what the model would have done instead.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from bench.common.errors import ConfigError, one_line
from bench.common.files import opened
from bench.elsewhere.tool_server import AskedServer, ToolAnswer
from bench.elsewhere.trials import RecordedCall, RecordedRun, RecordedTrial
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores
from bench.wire.json_rpc import Object

STORE = "{store}"
"""It stands for the path of the store's copy in the server's command and variables."""
RESETS = frozenset({"reset_state"})
"""Tools that undo what was done. They are never replayed."""
Delivered = Literal["twice", "lost", "anew", "keyed"]
"""What became of an effect: delivered twice; lost; all calls up to it done anew after a restart; delivered twice, but a journal
answers the second delivery by its key."""
ReplayedCall = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ServerSettings:
    """The user's server.

    words      its command; `{store}` in it is the path of the store's copy
    variables  its variables, likewise
    store      a file, an SQLite database or a folder that holds its first state; without it an empty folder, which the first
               recorded read fills
    ignore     what of the store no witness reads
    reads      patterns of tools that change nothing. This is checked at the end of a trial: a change that another call follows
               is taken for that call's
    apart      members of JSON answers that are not compared, as another version of the server has others
    answer_at  the member of a JSON answer, its names joined by dots, in which the recorded text stands
    withheld   how recorded answers begin that came from no server, such as an injected error
    """

    words: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    store: Path | None = None
    ignore: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    apart: frozenset[str] = frozenset()
    answer_at: str = ""
    withheld: str | None = None

    @property
    def has_store(self) -> bool:
        """Whether the server works on a store that the probe's witnesses can read."""
        return any(STORE in text for text in (*self.words, *self.variables.values()))

    def is_read(self, tool: str) -> bool:
        """Return whether a tool changes nothing, according to the user."""
        return any(fnmatchcase(tool, pattern) for pattern in self.reads)

    def is_replayed(self, call: RecordedCall) -> bool:
        """Return whether a recorded call reached a server, so that it is sent again."""
        came_from_server = self.withheld is None or not call.answer.startswith(self.withheld)
        return call.answered is not None and call.tool not in RESETS and came_from_server

    def text_of(self, answer: ToolAnswer) -> str:
        """Return the part of an answer that is compared with the recorded text."""
        if not self.answer_at:
            return answer.text
        try:
            value = json.loads(answer.text)
            for name in self.answer_at.split("."):
                value = value[name]
        except (ValueError, RecursionError, LookupError, TypeError):
            return answer.text
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def likeness(recorded: str, answered: str, apart: frozenset[str] = frozenset()) -> Literal["equal", "alike", "differs"]:
    """Return how alike two answers are: equal letter for letter, equal as JSON, or alike.

    Answers of two versions of a server are alike if they differ only in members of JSON that one of them lacks and that are
    null or in `apart`, or in the case of letters of another text.
    """
    if recorded == answered:
        return "equal"
    try:
        then, now = json.loads(recorded), json.loads(answered)
        if then == now:
            return "equal"
        return "alike" if _are_alike(then, now, apart) else "differs"
    except (ValueError, RecursionError):
        return "alike" if recorded.casefold() == answered.casefold() else "differs"


def _are_alike(then: Any, now: Any, apart: frozenset[str]) -> bool:
    if isinstance(then, dict) and isinstance(now, dict):
        return all(
            _are_alike(then[name], now[name], apart)
            if name in then and name in now
            else name in apart or then.get(name, now.get(name)) is None
            for name in {*then, *now}
        )
    if isinstance(then, list) and isinstance(now, list):
        return len(then) == len(now) and all(_are_alike(*pair, apart) for pair in zip(then, now, strict=True))
    return bool(then == now)


@dataclass(frozen=True)
class DifferingAnswer:
    """An answer that differs from the recorded answer. `place` is the number of the call in its trial, from 0."""

    place: int
    tool: str
    recorded: str
    answered: str


@dataclass(frozen=True)
class StoreEnd:
    """The digest of the store after some calls, and the calls that were refused."""

    digest: str
    refused: tuple[bool, ...]


@dataclass(frozen=True)
class Consequence:
    """The result of a trial in which one effect was delivered in another way, and the rest of the recorded calls followed.

    refused   whether the second delivery was answered by an error
    changed   whether the store at the end differs from the clean end
    wrong     whether the trial turns wrong by that: it was solved, and its clean end was the right one
    """

    tool: str
    delivered: Delivered
    refused: bool
    changed: bool
    wrong: bool | None


@dataclass(frozen=True)
class Reexecuted:
    """A trial after its calls were sent again.

    answers       how many were compared
    alike         how many of them are not equal, but alike
    differing     those that differ
    lacking       the tool of each call that the server does not have: it is not sent
    state         whether the end is the right one, as the task's authors name it; None if they name none
    effects       places of the calls that changed the store
    consequences  of each effect, delivered in other ways; none if an answer differs
    """

    trial: RecordedTrial
    answers: int
    alike: int
    differing: tuple[DifferingAnswer, ...]
    lacking: tuple[str, ...] = ()
    state: bool | None = None
    effects: tuple[int, ...] = ()
    consequences: tuple[Consequence, ...] = ()


class Reexecution:
    """Sends the calls of trials again, one trial after another. `tools` are the tools that the server lists, known after the
    first trial."""

    def __init__(self, settings: ServerSettings, folder: Path):
        self._settings, self._folder = settings, folder
        self._stores: Stores | None = None
        self._first, self._ends = "", dict[str, StoreEnd]()
        self.tools: Mapping[str, Object] = {}

    async def trials(self, run: RecordedRun, trials: Sequence[RecordedTrial], danger: bool) -> AsyncIterator[Reexecuted]:
        """Yield each trial after its calls were sent again. With `danger`, its effects are also delivered in other ways.

        Raises:
            ConfigError: The server cannot be used, or a tool that is named as a read changed the store.
        """
        if danger and not self._settings.has_store:
            raise ConfigError(
                f"--danger: the server's store is not known; write {STORE} where its path stands in --mcp or --variable"
            )
        try:
            if self._settings.has_store:
                await self._make_store([call for trial in run.trials for call in trial.calls])
            for trial in trials:
                yield await self._trial(trial, danger)
        finally:
            if self._stores:
                await self._stores.remove()

    async def _make_store(self, calls: Sequence[RecordedCall]) -> None:
        where = self._settings.store
        if where is None:
            where = self._folder / "first"
            where.mkdir()
            reads = [call for call in calls if self._settings.is_read(call.tool) and self._settings.is_replayed(call)]
            async with self._server(str(where)) as server:  # it may make its store at its first call
                for call in reads:
                    if await server.call(call.tool, call.arguments):
                        break
        variables = {"STORE": STORE}
        stores = [StoreSettings("store", _kind(where), str(where), variables, ignore=self._settings.ignore)]
        self._stores = Stores.of(stores, self._folder / "copies", settle=0.0, secret=os.urandom(16))
        await self._stores.make()
        self._first = (await self._stores.read()).digest

    @asynccontextmanager
    async def _server(self, store: str) -> AsyncIterator[AskedServer]:
        words = [word.replace(STORE, store) for word in self._settings.words]
        variables = {name: text.replace(STORE, store) for name, text in self._settings.variables.items()}
        async with AskedServer(words, {**os.environ, **variables}) as server:
            self.tools = server.tools
            yield server

    async def _replay(
        self, calls: Sequence[ReplayedCall], after: Callable[[int], bool] = lambda _: False
    ) -> tuple[list[ToolAnswer | None], list[str]]:
        """Send calls to a new process that works on a new copy of the store. Return the answers (None if the server lacks the
        tool), and the digests of the store after each call that `after` selects, and at the end."""
        if self._stores:
            await self._stores.reset()
        answers, digests = list[ToolAnswer | None](), list[str]()
        async with self._server(self._stores.environment["STORE"] if self._stores else "") as server:
            for place, (tool, arguments) in enumerate(calls):
                answers.append(await server.call(tool, arguments))
                if self._stores and after(place):
                    digests.append((await self._stores.read()).digest)
            if self._stores and any(not self._settings.is_read(tool) for tool, _ in calls):
                digests.append((await self._stores.read()).digest)
        return answers, digests or [self._first]

    async def _trial(self, trial: RecordedTrial, danger: bool) -> Reexecuted:
        kept = [call for call in trial.calls if self._settings.is_replayed(call)]
        calls = [(call.tool, call.arguments) for call in kept]
        witnessed = [place for place, call in enumerate(kept) if not (call.failed or self._settings.is_read(call.tool))]
        answers, digests = await self._replay(calls, witnessed.__contains__)
        lacking = tuple(call.tool for call, answer in zip(kept, answers, strict=True) if answer is None)
        differing, alike = list[DifferingAnswer](), 0
        for place, (call, answer) in enumerate(zip(kept, answers, strict=True)):
            if answer is not None:
                how = likeness(call.answer, text := self._settings.text_of(answer), self._settings.apart)
                alike += how == "alike"
                differing += [DifferingAnswer(place, call.tool, call.answer, text)] * (how == "differs")
        result = Reexecuted(trial, len(kept) - len(lacking), alike, tuple(differing), lacking)
        if not self._stores:
            return result
        end, before, effects = digests[-1], self._first, list[int]()
        for place, digest in zip(witnessed, digests, strict=False):
            if digest != before:
                effects.append(place)
            before = digest
        if end != before and not differing:
            raise ConfigError(
                f"task {one_line(trial.task, 60)}: a call that failed, or whose tool --read names, changed the store"
            )
        right = await self._right_end(trial)
        state = None if right is None else end == right
        consequences = []
        if danger and not differing:
            solved = trial.solved is True and state is not False
            for place in effects:
                consequences += [await self._consequence(calls, place, how, end, solved) for how in ("twice", "lost", "anew")]
            if effects:
                consequences.append(await self._consequence(calls, effects[-1], "keyed", end, solved))
        return replace(result, state=state, effects=tuple(effects), consequences=tuple(consequences))

    async def _right_end(self, trial: RecordedTrial) -> str | None:
        """Return the store's digest after the calls that the task's authors name, or None if the server does not have them."""
        writes = self._writes(trial.expected or ())
        known = trial.expected is not None and all(tool in self.tools for tool, _ in writes)
        return (await self._end(writes)).digest if known else None

    async def _end(self, writes: Sequence[ReplayedCall]) -> StoreEnd:
        """Return the state to which these calls lead, of which only calls that can change the store are sent. The same calls
        are sent only once."""
        key = json.dumps(writes, sort_keys=True)
        if key not in self._ends:
            answers, digests = await self._replay(writes) if writes else ([], [self._first])
            self._ends[key] = StoreEnd(digests[-1], tuple(map(self._is_refusal, answers)))
        return self._ends[key]

    async def _consequence(
        self, calls: Sequence[ReplayedCall], place: int, how: Delivered, end: str, solved: bool
    ) -> Consequence:
        begin, suffix = self._writes(calls[: place + 1]), self._writes(calls[place + 1 :])
        again: Sequence[ReplayedCall] = {"twice": begin[-1:], "anew": begin, "lost": [], "keyed": []}[how]
        reached = await self._end([*(begin[:-1] if how == "lost" else begin), *again, *suffix])
        refused = bool(again) and reached.refused[len(begin) + len(again) - 1]
        changed = reached.digest != end
        return Consequence(calls[place][0], how, refused, changed, changed if solved else None)

    def _writes(self, calls: Sequence[ReplayedCall]) -> list[ReplayedCall]:
        """Return the calls that can change the store. Other calls need not be sent again."""
        return [call for call in calls if not self._settings.is_read(call[0])]

    def _is_refusal(self, answer: ToolAnswer | None) -> bool:
        return answer is not None and (answer.failed or self._settings.text_of(answer).startswith("Error"))


def _kind(path: Path) -> str:
    if path.is_dir():
        return "folder"
    try:
        with opened(path) as file:
            return "sqlite" if file.read(16) == b"SQLite format 3\0" else "file"
    except OSError as error:
        raise ConfigError(f"--store: {path} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class ToolDanger:
    """The results of delivering the effects of one tool in another way."""

    effects: int
    refused: int
    absorbed: int
    changed: int
    solved: int
    wrong: int


def danger_of(trials: Sequence[Reexecuted]) -> Mapping[tuple[str, Delivered], ToolDanger]:
    """Return the counts by tool and delivery, the most dangerous tool first."""
    every = [each for trial in trials for each in trial.consequences]
    counted = Counter((each.tool, each.delivered) for each in every)
    doubled = Counter(each.tool for each in every if each.delivered == "twice" and each.changed)

    def order(item: tuple[tuple[str, Delivered], int]) -> tuple[int, str, int]:
        (tool, how), _ = item
        return -doubled[tool], tool, get_args(Delivered).index(how)

    return {
        key: ToolDanger(
            number,
            sum(each.refused and not each.changed for each in these),
            sum(not each.refused and not each.changed for each in these),
            sum(each.changed for each in these),
            sum(each.wrong is not None for each in these),
            sum(each.wrong is True for each in these),
        )
        for key, number in sorted(counted.items(), key=order)
        for these in [[each for each in every if (each.tool, each.delivered) == key]]
    }
