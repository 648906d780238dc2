"""A re-execution of other people's recorded tool calls on the user's own MCP server, which works on copies of its store.

The server's answers are compared with the recorded answers. Its store at the end is compared with the store after the calls
that the task's authors name as right. Then each effect is delivered twice, lost, or done again after a restart with an empty
store, followed by the rest of the recorded calls. Nobody knows what the model would have done instead.
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
from bench.elsewhere.tool_server import McpServerProcess, ToolAnswer
from bench.elsewhere.trials import RecordedCall, RecordedRun, RecordedTrial
from bench.probe.run.witness.kinds import StoreSettings
from bench.probe.run.witness.stores import Stores
from bench.wire.json_rpc import Object

STORE_PATH = "{store}"
"""The placeholder for the path of the store's copy, in the server's command and environment variables."""
RESET_TOOLS = frozenset({"reset_state"})
"""Tools that undo all calls before them. Their calls are never sent again."""
Delivery = Literal["twice", "lost", "anew", "keyed"]
"""How an effect is delivered in a re-execution.

twice   the effect's call is sent twice
lost    the effect's call is not sent
anew    all calls up to the effect are sent again after a restart
keyed   the effect's call is sent twice, but a journal answers the second time by the call's key
"""
ReplayedCall = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ServerSettings:
    """The settings of the user's server.

    words      the server's command; `{store}` is replaced by the path of the store's copy
    variables  the server's environment variables; `{store}` is replaced as well
    store      a file, an SQLite database or a folder with the first state of the store; None: an empty folder, which the
               first recorded read fills
    ignore     the parts of the store that no witness reads
    reads      patterns of names of tools that change nothing. This is checked at the end of a trial: a change by such a tool
               counts as a change by the next call of another tool
    ignored_members   members of JSON answers that are not compared, because another version of the server has other values
    answer_at  the path of the member of a JSON answer that contains the recorded text, joined by dots
    withheld   the beginning of recorded answers that came from no server, for example injected errors
    """

    words: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    store: Path | None = None
    ignore: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    ignored_members: frozenset[str] = frozenset()
    answer_at: str = ""
    withheld: str | None = None

    @property
    def has_store(self) -> bool:
        """Whether the server works on a store that the probe's witnesses can read."""
        return any(STORE_PATH in text for text in (*self.words, *self.variables.values()))

    def is_read(self, tool: str) -> bool:
        """Return whether a tool changes nothing, according to the user."""
        return any(fnmatchcase(tool, pattern) for pattern in self.reads)

    def is_replayed(self, call: RecordedCall) -> bool:
        """Return whether a recorded call reached a server, so that it is sent again."""
        came_from_server = self.withheld is None or not call.answer.startswith(self.withheld)
        return call.answered is not None and call.tool not in RESET_TOOLS and came_from_server

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


def compare_answers(
    recorded: str, answered: str, ignored: frozenset[str] = frozenset()
) -> Literal["equal", "alike", "differs"]:
    """Return whether two answers are equal (as text or as JSON), alike, or different.

    Answers of two versions of a server are alike if they differ only in JSON members that one of them lacks and that are
    null or in `ignored`, or in upper and lower case of a text that is no JSON.
    """
    if recorded == answered:
        return "equal"
    try:
        recorded_value, answered_value = json.loads(recorded), json.loads(answered)
        if recorded_value == answered_value:
            return "equal"
        return "alike" if _are_alike(recorded_value, answered_value, ignored) else "differs"
    except (ValueError, RecursionError):
        return "alike" if recorded.casefold() == answered.casefold() else "differs"


def _are_alike(recorded: Any, answered: Any, ignored: frozenset[str]) -> bool:
    """Return whether two JSON values differ only in members that do not count."""
    if isinstance(recorded, dict) and isinstance(answered, dict):
        if not all(_are_alike(recorded[name], answered[name], ignored) for name in recorded.keys() & answered.keys()):
            return False
        in_one = recorded.keys() ^ answered.keys()
        return all(name in ignored or recorded.get(name, answered.get(name)) is None for name in in_one)
    if isinstance(recorded, list) and isinstance(answered, list):
        return len(recorded) == len(answered) and all(
            _are_alike(*pair, ignored) for pair in zip(recorded, answered, strict=True)
        )
    return bool(recorded == answered)


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
    """The end of a trial in which one effect was delivered in another way, followed by the rest of the recorded calls.

    refused   whether the second delivery was answered with an error
    changed   whether the store at the end differs from the clean end
    wrong     whether the changed end makes a solved trial wrong; None if the trial was not solved
    """

    tool: str
    delivered: Delivery
    refused: bool
    changed: bool
    wrong: bool | None


@dataclass(frozen=True)
class Reexecuted:
    """A trial after its calls were sent again.

    answers       the number of compared answers
    alike         the number of answers that are not equal, but alike
    differing     the answers that differ
    lacking       the tools of the calls that were not sent, because the server lacks the tool
    state         whether the end of the store is the right end that the task's authors name; None if they name none
    effects       the indexes of the calls that changed the store
    consequences  the results of delivering each effect in other ways; empty if an answer differs
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
    """Sends the calls of trials again, one trial after another. `tools` are the tools that the server lists; they are known
    after the first trial."""

    def __init__(self, settings: ServerSettings, folder: Path):
        self._settings, self._folder = settings, folder
        self._stores: Stores | None = None
        self._first_digest, self._ends_by_calls = "", dict[str, StoreEnd]()
        self.tools: Mapping[str, Object] = {}

    async def trials(self, run: RecordedRun, trials: Sequence[RecordedTrial], danger: bool) -> AsyncIterator[Reexecuted]:
        """Yield each trial after its calls were sent again. With `danger` each effect is also lost, delivered twice, and done
        anew after a restart, each time with the recorded calls behind it.

        Raises:
            ConfigError: The server cannot be used, or a tool that is named as a read changed the store.
        """
        if danger and not self._settings.has_store:
            raise ConfigError(
                f"--danger: the server's store is not known; write {STORE_PATH} where its path stands in --mcp or --variable"
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
        """Copy the store, and read its first state. Without a store, the first recorded read lets the server create one."""
        store_path = self._settings.store
        if store_path is None:
            store_path = self._folder / "first"
            store_path.mkdir()
            reads = [call for call in calls if self._settings.is_read(call.tool) and self._settings.is_replayed(call)]
            async with self._server(str(store_path)) as server:  # it may make its store at its first call
                for call in reads:
                    if await server.call(call.tool, call.arguments):
                        break
        variables = {"STORE": STORE_PATH}
        stores = [StoreSettings("store", _kind(store_path), str(store_path), variables, ignore=self._settings.ignore)]
        self._stores = Stores.of(stores, self._folder / "copies", settle=0.0, secret=os.urandom(16))
        await self._stores.make()
        self._first_digest = (await self._stores.read()).digest

    @asynccontextmanager
    async def _server(self, store: str) -> AsyncIterator[McpServerProcess]:
        """Start a server on this copy of the store."""
        words = [word.replace(STORE_PATH, store) for word in self._settings.words]
        variables = {name: text.replace(STORE_PATH, store) for name, text in self._settings.variables.items()}
        async with McpServerProcess(words, {**os.environ, **variables}) as server:
            self.tools = server.tools
            yield server

    async def _replay(
        self, calls: Sequence[ReplayedCall], reads_store_after: Callable[[int], bool] = lambda _: False
    ) -> tuple[list[ToolAnswer | None], list[str]]:
        """Send calls to a new process that works on a new copy of the store.

        Args:
            calls: The calls.
            reads_store_after: A function that selects calls, by index, after which the store is read.

        Returns:
            The answers (None if the server lacks the tool), and the digests of the store after each selected call and at the
                end.
        """
        if self._stores:
            await self._stores.reset()
        answers, digests = list[ToolAnswer | None](), list[str]()
        async with self._server(self._stores.environment["STORE"] if self._stores else "") as server:
            for place, (tool, arguments) in enumerate(calls):
                answers.append(await server.call(tool, arguments))
                if self._stores and reads_store_after(place):
                    digests.append((await self._stores.read()).digest)
            if self._stores and any(not self._settings.is_read(tool) for tool, _ in calls):
                digests.append((await self._stores.read()).digest)
        return answers, digests or [self._first_digest]

    async def _trial(self, trial: RecordedTrial, danger: bool) -> Reexecuted:
        """Send the calls of a trial again, and compare the answers and the store at the end with the recorded ones. With
        `danger`, also deliver each effect in other ways, if no answer differs."""
        sent_calls = [call for call in trial.calls if self._settings.is_replayed(call)]
        calls = [(call.tool, call.arguments) for call in sent_calls]
        writes = [place for place, call in enumerate(sent_calls) if not (call.failed or self._settings.is_read(call.tool))]
        answers, digests = await self._replay(calls, writes.__contains__)
        lacking = tuple(call.tool for call, answer in zip(sent_calls, answers, strict=True) if answer is None)
        differing, alike = list[DifferingAnswer](), 0
        for place, (call, answer) in enumerate(zip(sent_calls, answers, strict=True)):
            if answer is not None:
                text = self._settings.text_of(answer)
                similarity = compare_answers(call.answer, text, self._settings.ignored_members)
                alike += similarity == "alike"
                differing += [DifferingAnswer(place, call.tool, call.answer, text)] if similarity == "differs" else []
        result = Reexecuted(trial, len(sent_calls) - len(lacking), alike, tuple(differing), lacking)
        if not self._stores:
            return result
        end_digest, digest_before, effects = digests[-1], self._first_digest, list[int]()
        for place, digest in zip(writes, digests, strict=False):
            if digest != digest_before:
                effects.append(place)
            digest_before = digest
        if end_digest != digest_before and not differing:
            raise ConfigError(
                f"task {one_line(trial.task, 60)}: a call that failed, or whose tool --read names, changed the store"
            )
        right_end = await self._right_end(trial)
        state = None if right_end is None else end_digest == right_end
        consequences = []
        if danger and not differing:
            solved = trial.solved is True and state is not False
            deliveries: list[tuple[int, Delivery]] = [(place, way) for place in effects for way in ("twice", "lost", "anew")]
            deliveries += [(place, "keyed") for place in effects[-1:]]
            consequences = [await self._consequence(calls, place, way, end_digest, solved) for place, way in deliveries]
        return replace(result, state=state, effects=tuple(effects), consequences=tuple(consequences))

    async def _right_end(self, trial: RecordedTrial) -> str | None:
        """Return the digest of the store after the calls that the task's authors name; None if the server lacks their tools."""
        writes = self._writes(trial.expected or ())
        has_tools = trial.expected is not None and all(tool in self.tools for tool, _ in writes)
        return (await self._end_after(writes)).digest if has_tools else None

    async def _end_after(self, writes: Sequence[ReplayedCall]) -> StoreEnd:
        """Return the end of the store after these calls. Only calls that can change the store are sent, and equal sequences
        of calls are sent only once."""
        key = json.dumps(writes, sort_keys=True)
        if key not in self._ends_by_calls:
            answers, digests = await self._replay(writes) if writes else ([], [self._first_digest])
            self._ends_by_calls[key] = StoreEnd(digests[-1], tuple(map(self._is_refusal, answers)))
        return self._ends_by_calls[key]

    async def _consequence(
        self, calls: Sequence[ReplayedCall], place: int, delivery: Delivery, end: str, solved: bool
    ) -> Consequence:
        """Return the end of a trial in which the effect at `place` is delivered as `delivery` says. The other calls are sent as
        recorded. `end` is the digest of the store at the clean end."""
        calls_to_effect, later_calls = self._writes(calls[: place + 1]), self._writes(calls[place + 1 :])
        repeated_calls = {"twice": calls_to_effect[-1:], "anew": calls_to_effect}.get(delivery, [])
        first_calls = calls_to_effect[:-1] if delivery == "lost" else calls_to_effect
        end_reached = await self._end_after([*first_calls, *repeated_calls, *later_calls])
        refused = bool(repeated_calls) and end_reached.refused[len(first_calls) + len(repeated_calls) - 1]
        changed = end_reached.digest != end
        tool, _ = calls[place]
        return Consequence(tool, delivery, refused, changed, changed if solved else None)

    def _writes(self, calls: Sequence[ReplayedCall]) -> list[ReplayedCall]:
        """Return the calls that can change the store. Other calls need not be sent again."""
        return [(tool, arguments) for tool, arguments in calls if not self._settings.is_read(tool)]

    def _is_refusal(self, answer: ToolAnswer | None) -> bool:
        """Return whether an answer is an error."""
        return answer is not None and (answer.failed or self._settings.text_of(answer).startswith("Error"))


def _kind(path: Path) -> str:
    """Return the kind of the store at this path: folder, sqlite or file. Raises ConfigError if the file cannot be read."""
    if path.is_dir():
        return "folder"
    try:
        with opened(path) as file:
            return "sqlite" if file.read(16) == b"SQLite format 3\0" else "file"
    except OSError as error:
        raise ConfigError(f"--store: {path} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class ToolDanger:
    """The results of delivering the effects of one tool in one other way, as numbers of effects.

    refused    the second delivery was refused, and changed nothing
    absorbed   the second delivery was not refused, and changed nothing
    changed    the store at the end differs from the clean end
    solved     the effects of solved trials
    wrong      the effects whose delivery made a solved trial wrong
    """

    effects: int
    refused: int
    absorbed: int
    changed: int
    solved: int
    wrong: int


def danger_of(trials: Sequence[Reexecuted]) -> Mapping[tuple[str, Delivery], ToolDanger]:
    """Return the counts for each tool and kind of delivery, the most dangerous tool first."""
    consequences = [consequence for trial in trials for consequence in trial.consequences]
    counted = Counter((consequence.tool, consequence.delivered) for consequence in consequences)
    doubled = Counter(
        consequence.tool for consequence in consequences if consequence.delivered == "twice" and consequence.changed
    )

    def order(item: tuple[tuple[str, Delivery], int]) -> tuple[int, str, int]:
        """Return the sort key of a tool and a kind of delivery."""
        (tool, delivery), _ = item
        return -doubled[tool], tool, get_args(Delivery).index(delivery)

    return {
        key: ToolDanger(
            number,
            sum(consequence.refused and not consequence.changed for consequence in group),
            sum(not consequence.refused and not consequence.changed for consequence in group),
            sum(consequence.changed for consequence in group),
            sum(consequence.wrong is not None for consequence in group),
            sum(consequence.wrong is True for consequence in group),
        )
        for key, number in sorted(counted.items(), key=order)
        for group in [[consequence for consequence in consequences if (consequence.tool, consequence.delivered) == key]]
    }
