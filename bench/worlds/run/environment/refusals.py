"""Refuse an unusable environment in one line that says what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import get_args

from pydantic import BaseModel

from bench.common.errors import PackError, nearest
from bench.worlds.run.environment.contracts import refuse_contracts
from bench.worlds.run.environment.database import OWN_PREFIX
from bench.worlds.run.environment.declaration import Environment
from bench.worlds.run.environment.parts import EventKind, Person, Policy, Scheduled, Tool, ToolAccess
from bench.worlds.run.environment.procedure import refuse_procedure
from bench.worlds.run.environment.world import World


def refuse_environment(environment: Environment, where: str) -> None:
    """Raise PackError for the first mistake of a pack that makes its environment unusable."""
    for tool in environment.tools:
        if not isinstance(tool, Tool):
            raise PackError(f"{where}: {tool!r} stands among the tools; it must be a bench.worlds.run.environment.Tool")
    _refuse_equal_names((tool.name for tool in environment.tools), "tools", where)
    for tool in environment.tools:
        _refuse_tool(tool, environment, f"{where}: tool '{tool.name}'")
    _refuse_events(environment, where)
    for kind, person in environment.people.items():
        if not isinstance(person, Person):
            raise PackError(f"{where}: the person '{kind}' must be a bench.worlds.run.environment.Person")
    if environment.policy is not None and not (isinstance(environment.policy, Policy) and environment.policy.version):
        raise PackError(f"{where}: the policy must be a bench.worlds.run.environment.Policy with a version")
    for name, function in (("audit", environment.audit), ("reference", environment.reference), *environment.wrong.items()):
        if not callable(function):
            raise PackError(f"{where}: {name} must be a function, not {function!r}")
    refuse_contracts(environment.roles, environment.quotas, environment.by_name, where)
    refuse_procedure(environment.procedure, environment.by_kind, environment.roles, where)
    _refuse_database(environment, where)


def _refuse_tool(tool: Tool, environment: Environment, at: str) -> None:
    """Raise PackError if the declaration of a tool is wrong. `at` names the tool."""
    if tool.kind not in get_args(ToolAccess):
        raise PackError(f"{at}: its kind is '{tool.kind}'; {nearest(str(tool.kind), get_args(ToolAccess))}")
    for what, model in (("arguments", tool.arguments), ("result", tool.result)):
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise PackError(f"{at}: its {what} must be a class derived from pydantic.BaseModel, not {model!r}")
    if not callable(tool.run):
        raise PackError(f"{at}: run {tool.run!r} is not a function")
    if tool.writes and tool.effect is None:
        raise PackError(f"{at} writes and names no effect; give it effect=, the business key of what it changes")
    _refuse_undo(tool, environment, at)


def _refuse_undo(tool: Tool, environment: Environment, at: str) -> None:
    """Raise PackError if the undo of a tool is missing or wrong."""
    if tool.kind == "compensable" and not tool.undo:
        raise PackError(f"{at} is compensable and names no undo; name the tool that takes it back, or declare it final")
    if tool.kind != "compensable" and tool.undo:
        raise PackError(f"{at} is {tool.kind} and has an undo; declare it compensable, or leave the undo out")
    if tool.undo and tool.undo not in environment.by_name:
        raise PackError(f"{at}: its undo '{tool.undo}' is not a tool; {nearest(tool.undo, environment.by_name)}")
    if tool.undo and not environment.by_name[tool.undo].writes:
        raise PackError(f"{at}: its undo '{tool.undo}' is declared read and can take nothing back; declare it final")
    sharing = [other.name for other in environment.tools if other.undo and other.undo == tool.undo]
    if len(sharing) > 1:
        raise PackError(f"{at}: its undo '{tool.undo}' is that of '{sharing[0]}' as well; give each its own")


def _refuse_events(environment: Environment, where: str) -> None:
    """Raise PackError if the declared events are wrong."""
    if not all(isinstance(kind, EventKind) for kind in environment.kinds):
        raise PackError(f"{where}: kinds must hold bench.worlds.run.environment.EventKind alone")
    if not all(isinstance(event, Scheduled) for event in environment.events):
        raise PackError(f"{where}: events must hold bench.worlds.run.environment.Scheduled alone")
    _refuse_equal_names((kind.name for kind in environment.kinds), "kinds of event", where)
    _refuse_equal_names((event.name for event in environment.events), "events", where)
    for event in environment.events:
        at = f"{where}: event '{event.name}'"
        if event.kind not in environment.by_kind:
            raise PackError(f"{at} is of kind '{event.kind}', which kinds lacks; {nearest(event.kind, environment.by_kind)}")
        if event.at < environment.begins or (environment.ends is not None and event.at > environment.ends):
            raise PackError(f"{at} comes at {event.at}, outside of the world's time; move it, or begins and ends")


def _refuse_equal_names(names: Iterable[str], what: str, where: str) -> None:
    """Raise PackError if two names are equal."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PackError(f"{where}: two of its {what} are named '{name}'; rename one")
        seen.add(name)


def _refuse_database(environment: Environment, where: str) -> None:
    """Create the world once, so that errors in its schema or rows show."""
    for table in environment.rows:
        if table.startswith(OWN_PREFIX):
            raise PackError(
                f"{where}: the name of the table '{table}' is reserved; use a name that does not begin with {OWN_PREFIX}"
            )
    try:
        world = World(environment)
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise PackError(
            f"{where}: its world cannot be made: {' '.join(str(error).split())}; see its schema and rows"
        ) from error
    try:
        world.standings()
    finally:
        world.close()
