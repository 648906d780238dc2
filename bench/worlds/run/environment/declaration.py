"""An environment: all that a pack declares about its world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from bench.common.digests import digest_of
from bench.record.journal import dump
from bench.record.moment import Moment
from bench.worlds.run.environment.contracts import Quota, Role
from bench.worlds.run.environment.database import Db
from bench.worlds.run.environment.parts import EventKind, Person, Policy, Scheduled, Standing, Tool
from bench.worlds.run.environment.procedure import ProcedureStep

START = Moment(0)
Course = Callable[[Any], None]
"""The calls that somebody makes in a `bench.worlds.run.environment.World`, which is the argument."""


@dataclass(frozen=True)
class JudgmentState:
    """A judgment in one state of the world. `documents`: document name -> a tool's result, as JSON."""

    subtask: str
    documents: Mapping[str, Any]


@dataclass(frozen=True)
class Environment:
    """A world as one instance of a pack declares it.

    schema      SQL that creates the pack's tables; their names do not begin with `world_`
    rows        table -> its first rows, made from the instance
    tools       what an agent can do
    audit       (db) -> how often each effect that is owed, or must not happen, stands in the pack's tables: the second count of
                damage, made without the journal
    reference   makes the right calls; a grader accepts the result
    wrong       name -> a course that a careless grader would accept
    given       names of documents that a judgment can read and that are given with each call: the state of the world
    right       (subtask, documents) -> the right output of a judgment in that state, as JSON; a simulated model answers with it
    states      (this environment) -> the states in which judgments are asked for a bank of replies: the states of the right
                course, and the states to which a wrong judgment leads
    notes       fields of judgments that hold free text: neither right nor wrong
    events      events that come whatever the agent does; `kinds` says what each kind changes
    people      kind -> the person to ask
    halted      (db, now) -> why the kill switch is thrown, or ""
    throttle    most tool calls in one minute of world time; 0: no limit
    quotas      most calls in a day or in the whole trial, by tool and role
    roles       role -> the tools that an agent in it can call; an agent in any other role can call all tools
    patience    real seconds that a call can take before it fails
    begins, ends   the world's first and last moment; events scheduled up to the last moment happen, even if no agent waits
    procedure   the steps of the work, for architectures that know no pack
    work        the steps in words, for an agent that is told what to do; replaces the task's role
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
    def contracts(self) -> str:
        """Return the digest of its tools' contracts: names, kinds and arguments."""
        contracts = [(tool.name, tool.kind, tool.arguments.model_json_schema()) for tool in self.tools]
        return digest_of(dump(sorted(contracts, key=str)))

    @cached_property
    def by_kind(self) -> Mapping[str, EventKind]:
        """Return the kinds of events by name."""
        return {kind.name: kind for kind in self.kinds}

    @cached_property
    def undoes(self) -> Mapping[str, str]:
        """Return, for each undo tool, the tool whose effects it undoes."""
        return {tool.undo: tool.name for tool in self.tools if tool.undo}
