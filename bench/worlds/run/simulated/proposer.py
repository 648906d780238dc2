"""A simulated proposer that calls tools: a pure function of a pack's world, the messages, and the tools that are offered.

It takes the pack's procedure, or its reference course if it has none, and knows nothing but this conversation: it looks up
which calls were made and answered, and proposes the first calls that were not made. When nothing is left, it says that it is
done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from bench.record.messages import Message
from bench.scenario import Task
from bench.worlds.run.environment import Call, Environment
from bench.worlds.run.simulated.conversation import Conversation, offered_names
from bench.worlds.run.simulated.course import Judge, ProcedureCourse, tools_of
from bench.worlds.run.simulated.world import NotYet, RememberedWorld

DONE = "The work is done."
STUCK = "I cannot go on: what I was told does not let me do what is left."


@dataclass(frozen=True)
class Proposed:
    """The proposed calls, with the names under which the tools are offered; or, without calls, a last text. `names` are the
    names of the world's tools."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    names: frozenset[str] = field(default=frozenset(), compare=False)


def next_calls(
    environment: Environment,
    task: Task,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    together: bool = True,
    judge: Judge | None = None,
) -> Proposed:
    """Return the next calls, several if they can be made `together`. `judge` makes the procedure's judgments instead of the
    pack; it must always answer the same question the same way."""
    names = offered_names(tools, tools_of(environment))
    known_names = frozenset(names.values())
    with closing(RememberedWorld(environment, Conversation(messages, names))) as world:
        try:
            _follow_course(environment, task, world, judge)
        except NotYet as not_yet:
            if missing := [call.tool for call in not_yet.calls if call.tool not in names]:
                return Proposed(text=f"I cannot go on: there is no tool '{missing[0]}'.", names=known_names)
            calls = not_yet.calls if together else not_yet.calls[:1]
            return Proposed(tuple(Call(names[call.tool], call.arguments) for call in calls), names=known_names)
        except _ReferenceFailed:
            return Proposed(text=STUCK, names=known_names)
    return Proposed(text=DONE, names=known_names)


class _ReferenceFailed(Exception):
    """A reference course went wrong: it knows only the case in which all goes well."""


def _follow_course(environment: Environment, task: Task, world: RememberedWorld, judge: Judge | None) -> None:
    """Follow the pack's procedure, or its reference course if it has no procedure. Raises NotYet at the first call that is not
    in the conversation. Without a `judge`, the pack's right outputs are the judgments."""
    if environment.procedure and (right := environment.right):
        used_judge = judge or (lambda subtask, shown: right(subtask, {**task.documents, **shown}))
        ProcedureCourse(task, environment, world, used_judge, knows_policy=judge is None).follow()
        return
    try:
        world.learn_time()
        environment.reference(world)
    except NotYet:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _ReferenceFailed from error
