"""An environment: all that a pack declares of its world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from bench.worlds.environment.contracts import Quota, Role
from bench.worlds.environment.database import Db
from bench.worlds.environment.moment import Moment
from bench.worlds.environment.parts import EventKind, Person, Policy, Scheduled, Standing, Tool
from bench.worlds.environment.procedure import ProcedureStep

START = Moment(0)
Course = Callable[[Any], None]
"""What somebody does in a `bench.worlds.environment.World`, which it is given, call by call."""


@dataclass(frozen=True)
class JudgmentState:
    """A judgment in one state of the world. `documents`: what a tool returned, as JSON, by the name under which it is read."""

    subtask: str
    documents: Mapping[str, Any]


@dataclass(frozen=True)
class Environment:
    """A world as one instance of a pack declares it.

    schema      SQL that creates the pack's tables; their names do not begin with `world_`
    rows        table -> the rows it begins with, made from the instance
    tools       what an agent can do
    audit       (db) -> what stands in the pack's tables for each business key that ought, or ought not, to stand there: damage
                is counted by it a second time, without the journal
    reference   does what is right, call by call; a grader accepts what comes of it
    wrong       name -> a course that a careless grader would let pass
    given       names of documents that a judgment may read and that are given with each call: the state of the world
    right       (subtask, documents) -> the right output of a judgment in that state, as JSON; a simulated model answers it
    states      (this environment) -> the states in which judgments are to be asked for a bank of replies: those of the right
                course, and those to which a judgment that errs leads
    notes       fields of judgments that are told in free words: neither right nor wrong
    events      what comes whatever the agent does; `kinds` says what an event of a kind changes
    people      kind -> who is asked
    halted      (db, now) -> why the kill switch is thrown, or ""
    throttle    tool calls that are taken in one minute of world time; 0: any number
    quotas      how many are taken in a day, or in the whole trial, by tool and role
    roles       role -> the tools that an agent may call in it; who calls in no role of these may call all
    patience    real seconds that a call may take; then it has failed
    begins, ends   the world's first and last moment; what was scheduled up to then happens, whether or not the agent waits
    procedure   the steps of the work, for architectures that know no pack
    work        the same in words, for an agent that is told what to do; it stands in the place of the task's role
    """

    part: ClassVar[str] = "world"
    schema: str
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    tools: tuple[Tool, ...]
    audit: Callable[[Db], Iterable[Standing]]
    reference: Course
    wrong: Mapping[str, Course] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    right: Callable[[str, Mapping[str, str]], Any] | None = None
    states: Callable[[Environment], Iterable[JudgmentState]] | None = None
    notes: tuple[str, ...] = ()
    events: tuple[Scheduled, ...] = ()
    kinds: tuple[EventKind, ...] = ()
    people: Mapping[str, Person] = field(default_factory=dict)
    policy: Policy | None = None
    halted: Callable[[Db, Moment], str] | None = None
    throttle: int = 60
    quotas: tuple[Quota, ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    patience: float = 5.0
    begins: Moment = START
    ends: Moment | None = None
    procedure: tuple[ProcedureStep, ...] = ()
    work: str = ""

    @cached_property
    def by_name(self) -> Mapping[str, Tool]:
        """Return the tools by name."""
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def by_kind(self) -> Mapping[str, EventKind]:
        """Return the kinds of events by name."""
        return {kind.name: kind for kind in self.kinds}

    @cached_property
    def undoes(self) -> Mapping[str, str]:
        """Return undo -> the tool whose effect it takes back."""
        return {tool.undo: tool.name for tool in self.tools if tool.undo}
