"""The functions of a world that packs, faults and graders need (`bench.run.packs.environments.EnvironmentForPacks`)."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from bench.run.packs.digests import function_of, value_of
from bench.scenario import Json, schema_of
from bench.worlds.run.environment.declaration import Environment
from bench.worlds.run.environment.final import FinalWorld, content_of, final_world
from bench.worlds.run.environment.people import ANSWER, REVIEWER
from bench.worlds.run.environment.refusals import refuse_environment
from bench.worlds.run.environment.world import World

refuse = refuse_environment
content_to_grade = final_world


def declaration(environment: Environment) -> Json:
    """Return the parts of an environment that determine a world, as JSON: its tables, rows, tools, events, people and policy.
    `audit` and `reference` only judge a world and are left out."""
    return {
        "tables": [environment.schema, value_of(environment.rows)],
        "tools": [[_fields_of(tool), schema_of(tool.arguments), schema_of(tool.result)] for tool in environment.tools],
        "given": list(environment.given),
        "events": value_of(environment.events),
        "kinds": [_fields_of(kind) for kind in environment.kinds],
        "people": [[name, _fields_of(person)] for name, person in environment.people.items()],
        "policy": environment.policy and _fields_of(environment.policy),
        "halted": environment.halted and function_of(environment.halted),
        "time": [environment.throttle, value_of(environment.begins), value_of(environment.ends)],
    }


def _fields_of(part: Any) -> Json:
    """Return the values of a part's fields; for a function its name and bound values."""
    values = [getattr(part, field.name) for field in dataclasses.fields(part)]
    return [
        function_of(value) if inspect.isroutine(value) or isinstance(value, functools.partial) else value_of(value)
        for value in values
    ]


def targets(environment: Environment, point: str, on: str) -> Sequence[str]:
    """Return the names that a fault can strike. `on` and `point` choose among claimable steps, people, kinds of events
    (people's answers included), and tools that read or write."""
    if on == "claim":
        return [step.name for step in environment.procedure]
    if on == "ask":
        return [*environment.people, REVIEWER]
    if on == "answer":
        return [ANSWER]
    if point == "event":
        return [*(kind.name for kind in environment.kinds), *([ANSWER] if environment.people else [])]
    return [tool.name for tool in environment.tools if on in ("any", "write" if tool.writes else "read")]


def restore(text: str) -> FinalWorld:
    """Return the world that this SQL makes. Raises CannotRestore for any other text."""
    return final_world(content_of(text))


def right_end(environment: Environment) -> FinalWorld:
    """Return the world after the course of events that the pack declares as right."""
    with closing(World(environment)) as world:
        environment.reference(world)
        world.end()
        return final_world(world.snapshot().content)
