"""The tools that every world offers besides the pack's tools: for time, notices and people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from bench.common.bounds import BoundedTable
from bench.worlds.run.environment import Arrival
from bench.worlds.run.runtime.actions import WorldActions

MAX_DAYS, MAX_MINUTES, MAX_EVENTS = 10_000, 1_000_000, 1_000_000_000
ToolHandler = Callable[[WorldActions, Any, str | None], Awaitable[Any]]
"""(world, arguments, idempotency key) -> the result, as JSON. Raises Crashed and GaveUp as the world's actions do."""


@dataclass(frozen=True)
class WorldTool:
    """A tool that every world offers."""

    name: str
    description: str
    arguments: type[BaseModel]
    handler: ToolHandler


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Wait(_Arguments):
    days: int = Field(0, ge=0, le=MAX_DAYS)
    minutes: int = Field(0, ge=0, le=MAX_MINUTES)


class NextEvent(_Arguments):
    after: int = Field(0, ge=0, le=MAX_EVENTS, description="the number of the last event that is known")
    days: int | None = Field(None, ge=0, le=MAX_DAYS)
    minutes: int | None = Field(None, ge=0, le=MAX_MINUTES)


class ListEvents(_Arguments):
    after: int = Field(0, ge=0, le=MAX_EVENTS, description="the number of the last event that is known")


class QuestionArguments(_Arguments):  # `_question_arguments` adds `kind`: one of the people whom the world has
    about: str = Field(max_length=500, description="what the question is about, in a few words")
    question: BoundedTable[str, Any] = Field(default_factory=dict, description="what the person has to know")
    days: int = Field(0, ge=0, le=MAX_DAYS)
    minutes: int = Field(0, ge=0, le=MAX_MINUTES)


def common_tools(people: tuple[str, ...]) -> tuple[WorldTool, ...]:
    """Return the tools that every world has: to wait, to read events and, if the world has people, to ask a person."""
    tools = (
        WorldTool("wait", "Let time pass: so many days and minutes. Gives the time then, and what came meanwhile.", Wait, wait),
        WorldTool(
            "next_event",
            "The first event behind a number. Waits for it, so many days and minutes at most; without them, until one comes."
            " null where none comes.",
            NextEvent,
            next_event,
        ),
        WorldTool("list_events", "All events behind a number that have come by now. Takes no time.", ListEvents, list_events),
    )
    if not people:
        return tools
    description = (
        "Ask a person, and wait for the answer, 3 days if days and minutes are not given."
        " The answer is approved, denied, or late where none came in time."
    )
    return (*tools, WorldTool("ask_person", description, _question_arguments(people), ask_person))


def _question_arguments(people: tuple[str, ...]) -> type[BaseModel]:
    """Return the arguments' type of the tool `ask_person`, for these people."""
    kind: Any = Literal[people]
    return create_model("AskPerson", __base__=QuestionArguments, kind=(kind, Field(description="who is asked")))


async def wait(world: WorldActions, arguments: Wait, _: str | None) -> Any:
    """Let time pass, and return the time then and the notices that came meanwhile."""
    arrivals = await world.wait(arguments.days, arguments.minutes)
    return {"day": world.now.day, "minute": world.now.minute, "events": [event_as_json(event) for event in arrivals]}


async def next_event(world: WorldActions, arguments: NextEvent, _: str | None) -> Any:
    """Return the first notice after a number; None if none comes in time."""
    has_limit = arguments.days is not None or arguments.minutes is not None
    until = world.now.after(arguments.days or 0, arguments.minutes or 0) if has_limit else None
    event = await world.next_event(arguments.after, until)
    return event_as_json(event) if event else None


async def list_events(world: WorldActions, arguments: ListEvents, _: str | None) -> Any:
    return [event_as_json(arrival) for arrival in world.arrivals(arguments.after)]


async def ask_person(world: WorldActions, arguments: Any, key: str | None) -> Any:
    """Ask a person, wait, and return the answer with its notice."""
    decision = await world.ask_person(
        arguments.kind, arguments.about, arguments.question, key, days=arguments.days, minutes=arguments.minutes
    )
    return {
        "answer": decision.answer,
        "ticket": decision.ticket,
        "event": event_as_json(decision.arrival) if decision.arrival else None,
    }


def event_as_json(arrival: Arrival) -> dict[str, Any]:
    """Return an event as JSON for an agent."""
    return {
        "number": arrival.number,
        "day": arrival.at.day,
        "minute": arrival.at.minute,
        "kind": arrival.kind,
        "name": arrival.name,
        "payload": dict(arrival.payload),
        "versions": dict(arrival.versions),
    }
