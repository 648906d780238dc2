"""The tools that every world offers beside the pack's tools: time, notices, people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from bench.common.bounds import BoundedTable
from bench.worlds.run.environment import Arrival
from bench.worlds.run.runtime.actions import WorldActions

MOST_DAYS, MOST_MINUTES, MOST_EVENTS = 10_000, 1_000_000, 1_000_000_000
ToolHandler = Callable[[WorldActions, Any, str | None], Awaitable[Any]]
"""(world, arguments, idempotency key) -> the result, as JSON. Raises Crashed and GaveUp as the world's actions do."""


@dataclass(frozen=True)
class Common:
    name: str
    description: str
    arguments: type[BaseModel]
    work: ToolHandler


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Wait(_Arguments):
    days: int = Field(0, ge=0, le=MOST_DAYS)
    minutes: int = Field(0, ge=0, le=MOST_MINUTES)


class NextEvent(_Arguments):
    after: int = Field(0, ge=0, le=MOST_EVENTS, description="the number of the last event that is known")
    days: int | None = Field(None, ge=0, le=MOST_DAYS)
    minutes: int | None = Field(None, ge=0, le=MOST_MINUTES)


class ListEvents(_Arguments):
    after: int = Field(0, ge=0, le=MOST_EVENTS, description="the number of the last event that is known")


class QuestionArguments(_Arguments):  # `_of_people` adds `kind`: one of the people whom the world has
    about: str = Field(max_length=500, description="what the question is about, in a few words")
    question: BoundedTable[str, Any] = Field(default_factory=dict, description="what the person has to know")
    days: int = Field(0, ge=0, le=MOST_DAYS)
    minutes: int = Field(0, ge=0, le=MOST_MINUTES)


def common_tools(people: tuple[str, ...]) -> tuple[Common, ...]:
    tools = (
        Common("wait", "Let time pass: so many days and minutes. Gives the time then, and what came meanwhile.", Wait, wait),
        Common(
            "next_event",
            "The first event behind a number. Waits for it, so many days and minutes at most; without them, until one comes."
            " null where none comes.",
            NextEvent,
            next_event,
        ),
        Common("list_events", "All events behind a number that have come by now. Takes no time.", ListEvents, list_events),
    )
    if not people:
        return tools
    problem = (
        "Ask a person, and wait for the answer, 3 days if days and minutes are not given."
        " The answer is approved, denied, or late where none came in time."
    )
    return (*tools, Common("ask_person", problem, _of_people(people), ask_person))


def _of_people(people: tuple[str, ...]) -> type[BaseModel]:
    kind: Any = Literal[people]
    return create_model("AskPerson", __base__=QuestionArguments, kind=(kind, Field(description="who is asked")))


async def wait(world: WorldActions, asked: Wait, _: str | None) -> Any:
    came = await world.wait(asked.days, asked.minutes)
    return {"day": world.now.day, "minute": world.now.minute, "events": [shown(event) for event in came]}


async def next_event(world: WorldActions, asked: NextEvent, _: str | None) -> Any:
    limited = asked.days is not None or asked.minutes is not None
    until = world.now.after(asked.days or 0, asked.minutes or 0) if limited else None
    event = await world.next_event(asked.after, until)
    return shown(event) if event else None


async def list_events(world: WorldActions, asked: ListEvents, _: str | None) -> Any:
    return [shown(arrival) for arrival in world.arrivals(asked.after)]


async def ask_person(world: WorldActions, asked: Any, key: str | None) -> Any:
    decision = await world.ask_person(asked.kind, asked.about, asked.question, key, days=asked.days, minutes=asked.minutes)
    return {
        "answer": decision.answer,
        "ticket": decision.ticket,
        "event": shown(decision.arrival) if decision.arrival else None,
    }


def shown(arrival: Arrival) -> dict[str, Any]:
    """Return an event as an agent is told of it."""
    return {
        "number": arrival.number,
        "day": arrival.at.day,
        "minute": arrival.at.minute,
        "kind": arrival.kind,
        "name": arrival.name,
        "payload": dict(arrival.payload),
        "versions": dict(arrival.versions),
    }
