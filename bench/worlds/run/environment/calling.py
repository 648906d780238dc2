"""Call a pack's code so that each of its possible behaviours becomes a result."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from bench.common.bounds import MAX_ITEMS
from bench.common.errors import ToolRefused
from bench.common.wording import first_violation
from bench.record.journal import CallOutcome, dump
from bench.record.moment import Moment
from bench.worlds.run.environment.database import Connection, Db, Later
from bench.worlds.run.environment.limits import DidNotEnd, TimeIsUp, TimeLimit
from bench.worlds.run.environment.parts import Tool

RefusalCode = Literal[
    "",
    "unknown_tool",
    "forbidden",
    "arguments",
    "key",
    "throttled",
    "quota",
    "stale",
    "declined",
    "wrote",
    "broke",
    "wrong_type",
    "hung",
    "unavailable",
    "unanswered",
]
"""Why a call was refused or failed, for code to branch on.

unknown_tool, arguments   there is no such tool; the arguments do not fit
forbidden    the role's contract does not allow this tool (`bench.worlds.run.environment.contracts.Role`)
key          the idempotency key belongs to another call
throttled    too many calls in this minute or on this day; `Acted.again` says when calls are taken again
quota        too many calls in this trial: waiting does not help
stale        a version is not the expected version
declined     the business declined (`bench.common.errors.ToolRefused`)
wrote        a tool that is declared read wrote
broke, wrong_type, hung   the tool raised, returned a wrong type, did not end
unavailable  the tool refuses service for now; nothing happened, but the agent cannot know this
unanswered   no answer came: the effect can have happened
"""


@dataclass(frozen=True)
class Acted:
    """The result of a tool call, as the agent gets it.

    effect     the business key of the intended effect
    outcome    `done`, `replayed` (done before under the same key), `refused` (nothing happened), `failed` (no answer
               came or the tool broke: the effect can have happened)
    result     the tool's result if done or replayed
    reason     why the call was not done, in words; `code` says the same for code
    versions   thing -> its version now, as far as the call shows it
    entry      the call's number in the journal; 0 if it is not in the journal
    again      if throttled, the moment when such a call is accepted again
    """

    tool: str
    effect: str
    outcome: CallOutcome
    result: Any = None
    reason: str = ""
    versions: Mapping[str, int] | None = None
    entry: int = 0
    code: RefusalCode = ""
    again: Moment | None = None

    @property
    def ok(self) -> bool:
        """Whether the call was done, now or before under the same key."""
        return self.outcome in ("done", "replayed")


@dataclass(frozen=True)
class PackRun:
    """The result of one run of a pack's function."""

    outcome: CallOutcome
    result: BaseModel | None = None
    reason: str = ""
    code: RefusalCode = ""


class PackCaller:
    """Calls a pack's code on one database, with a time limit of `patience` real seconds. `reading` and `writing` are the
    handles of the database for code that may not, and may, schedule events."""

    def __init__(self, connection: Connection, patience: float, later: Later):
        self._connection, self._limit = connection, TimeLimit(patience)
        self.reading, self.writing = Db(connection), Db(connection, self._scheduler_for_pack(later))
        connection.guard(self._limit.overdue)

    def run(self, tool: Tool, arguments: BaseModel, now: Moment) -> PackRun:
        """Run a tool. Never raises. The tool's writes stay in the open transaction; the caller commits it or rolls it back."""
        before = self._connection.total_changes
        try:
            result = self.call_pack(lambda: tool.run(self.writing if tool.writes else self.reading, arguments, now))
        except ToolRefused as refused:
            return PackRun("refused", None, " ".join(str(refused).split()) or "refused without a reason", "declined")
        except DidNotEnd:
            return PackRun("failed", None, f"tool '{tool.name}' did not end within {self._limit.seconds:g} s", "hung")
        except (Exception, SystemExit) as error:
            problem = f"tool '{tool.name}' raised {type(error).__name__}: {' '.join(str(error).split())}"
            return PackRun("failed", None, problem, "broke")
        if not tool.writes and self._connection.total_changes != before:
            problem = f"tool '{tool.name}' is declared read and wrote; declare it compensable or final"
            return PackRun("refused", None, problem, "wrote")
        if not isinstance(result, tool.result):
            problem = f"tool '{tool.name}' returned {type(result).__name__}; it must return {tool.result.__name__}"
            return PackRun("failed", None, problem, "wrong_type")
        return PackRun("done", result)

    def _scheduler_for_pack(self, later: Later) -> Later:
        """Return the function by which a pack's code schedules events. Scheduled events are in one of our tables, which the
        code cannot reach otherwise."""

        def schedule(kind: str, at: Moment, payload: Mapping[str, Any], name: str) -> None:
            """Schedule an event, outside of the restrictions of a pack's code."""
            self._connection.inside = False
            try:
                later(kind, at, payload, name)
            finally:
                self._connection.inside = True

        return schedule

    def call_pack(self, function: Callable[[], Any]) -> Any:
        """Call a pack's function, which can use only the pack's tables. Raises DidNotEnd if the time limit ends it."""
        self._connection.inside = True
        try:
            with self._limit.enforce():
                return function()
        except TimeIsUp as error:
            raise DidNotEnd(f"no end within {self._limit.seconds:g} s") from error
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise DidNotEnd(f"no end within {self._limit.seconds:g} s") from error
            raise
        finally:
            self._connection.inside = False


def parse_arguments(tool: Tool, given: BaseModel | Mapping[str, Any]) -> BaseModel | str:
    """Return a call's arguments as the tool's type, or one line that says what is wrong with them."""
    if isinstance(given, tool.arguments):
        return given
    return parse_as(tool.name, tool.arguments, given.model_dump() if isinstance(given, BaseModel) else given)


def parse_as(name: str, form: type[BaseModel], given: Mapping[str, Any]) -> BaseModel | str:
    """Return the arguments of the tool with this name as the type `form`, or one line that says what is wrong with them."""
    if items_in(given) > MAX_ITEMS:
        return f"the arguments of '{name}' do not fit: they hold more than {MAX_ITEMS:,} values"
    try:
        return form.model_validate(given)
    except ValidationError as error:
        first = first_violation(error)
        return f"the arguments of '{name}' do not fit: {first.place or 'they'} {first.words}"


def items_in(value: Any) -> int:
    """Return the number of values and names inside a JSON value."""
    items, remaining = 0, [value]
    while remaining:
        inner = remaining.pop()
        if isinstance(inner, (dict, list)):
            items += len(inner)
            remaining += inner.values() if isinstance(inner, dict) else inner
    return items


def effect_of(tool: Tool, arguments: BaseModel) -> str:
    """Return the business key of a call. For a read without a key, the call itself is the key."""
    if tool.effect:
        return tool.effect(arguments)
    return f"{tool.name} {dump(arguments.model_dump(mode='json'))}"
