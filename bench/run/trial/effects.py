"""The types of effects: what a fault can do to a text or to a call. The effects are parts in `text_effects` and `call_effects`.

A text effect gets the text to strike (`Target`) and a random generator, and returns the text that replaces it. It returns None
if it cannot strike the text, for example because a reply without JSON has no field that could be missing. Such a fault is *not
applicable*, and its receipt says so. A text effect never returns the text unchanged.

A call effect wraps the call. It gets `send`, which makes the call with its other faults, and returns the reply, raises a
CallFailed instead, or lets time pass. The effects of worlds are in `bench.worlds.run.runtime.effects`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import ClassVar, Literal, NoReturn, TypeVar, get_args

from bench.common.errors import CutOff
from bench.common.registry import Part, Registry, module_of
from bench.record.plan_entries import Point
from bench.record.tool_calls import ToolCall, counted_text_of
from bench.run.models.base import Reply, Sleep
from bench.scenario import Json, Output

POINTS: tuple[Point, ...] = get_args(Point)
CONTENT_POINTS: tuple[Point, ...] = ("output", "input", "state")
WORLD_POINTS: tuple[Point, ...] = ("tool", "event", "process")


@dataclass(frozen=True)
class Target:
    """The target of a fault: a reply's part, an input, or a committed output.

    text            the text to strike
    value           its JSON, None if it is none (a document, a reply that could not be read)
    schema          the output type that it should fit, None for a document
    earlier         its earlier version, None if there was none
    wrong_outputs   plausible wrong outputs of the subtask that wrote it, from the pack's wrong answers
    validates       whether it is the output of a subtask that can find an earlier output wrong
    """

    text: str
    value: Json = None
    schema: type[Output] | None = None
    earlier: str | None = None
    wrong_outputs: Sequence[Json] = ()
    validates: bool = False


@dataclass(frozen=True)
class Disturbance:
    """The arguments of a call effect besides `send`.

    seconds   the fault's seconds, from the config
    sleep     lets seconds pass on the trial's clock while the call is in flight
    """

    seconds: float
    sleep: Sleep


TextStrike = Callable[[Target, Random], str | None]
Send = Callable[[], Awaitable[Reply]]
CallStrike = Callable[[Send, Disturbance], Awaitable[Reply]]


@dataclass(frozen=True)
class Effect(Part):
    """The entry of an effect of any kind.

    An effect is found by its name and a point: one name can do one thing to a call and another to a tool. The name is a key of
    draws: it is never changed.

    points          where it can strike
    on              which calls of tools it can strike, at the points that have one; or what a person is asked, or answers; or
                    the claims of workers; "" if it strikes none of these
    from_reference  it draws from the pack's reference or its wrong answers, which then help to determine a trial
    """

    possible: ClassVar[tuple[Point, ...]] = POINTS
    points: tuple[Point, ...] = field(default=(), kw_only=True)
    on: Literal["", "read", "write", "any", "ask", "answer", "claim"] = field(default="", kw_only=True)
    from_reference: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self.refuse_unknown("points", self.points or ("nowhere",), self.possible)
        self.refuse_unknown("on", [self.on], ("", "read", "write", "any", "ask", "answer", "claim"))

    @property
    def keys(self) -> Sequence[Hashable]:
        """Return the pairs of name and point by which the registry finds the effect."""
        return [(self.name, point) for point in self.points]


@dataclass(frozen=True)
class TextEffect(Effect):
    """An effect on a reply, on an input, or on what is written to the state.

    strike        (target, generator) -> the text that replaces the target's, never the same text; None if the text cannot carry
                  the effect, and the fault is then not applicable. A reply that reads the same after it is left as it was. It
                  draws only from this generator
    needs_json    it can strike only a subtask's output, never a plain document
    ends_reply    nothing follows the struck text
    breaks_form   the struck text is no valid output, whatever the subtask
    alarms        it makes a validating subtask find an earlier output wrong, by which it is noticed, and strikes no other
    """

    possible: ClassVar[tuple[Point, ...]] = CONTENT_POINTS
    strike: TextStrike
    needs_json: bool = False
    ends_reply: bool = False
    breaks_form: bool = False
    alarms: bool = False

    @property
    def modules(self) -> Sequence[str]:
        """Return the module of `strike`."""
        return (module_of(self.strike),)


@dataclass(frozen=True)
class CallEffect(Effect):
    """An effect on a call.

    strike          (send, disturbance) -> the reply. It awaits `send()` for the call with its other faults, raises a
                    `CallFailed` with `injected=True` instead, or lets time pass
    fails           the call ends in a failure: of several such faults each spoils one request, and is noticed at once
    changes_reply   it gives a reply in the model's place: nobody may notice it, and it comes after all failures
    """

    possible: ClassVar[tuple[Point, ...]] = ("call",)
    strike: CallStrike
    fails: bool = False
    changes_reply: bool = False
    points: tuple[Point, ...] = field(default=("call",), kw_only=True)

    @property
    def modules(self) -> Sequence[str]:
        """Return the module of `strike`."""
        return (module_of(self.strike),)


EFFECTS: Registry[Effect] = Registry("effect", Effect)
E = TypeVar("E", bound=Effect)


def effect_at(name: str, point: Point, kind: type[E]) -> E:
    """Return the effect of this name at this point. The config was checked before, so it exists.

    Args:
        name: The effect's name.
        point: Where it strikes.
        kind: The type of its entry.

    Returns:
        The effect's entry.
    """
    effect = EFFECTS[name, point]
    assert isinstance(effect, kind)
    return effect


def points_of(name: str) -> list[Point]:
    """Return the points at which an effect of this name can strike.

    Args:
        name: A name, of an effect or not.

    Returns:
        Its points in the order of `POINTS`; empty if no effect has this name.
    """
    return [point for point in POINTS if (name, point) in EFFECTS]


dump = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
"""Write JSON as in the state and in prompts."""


class CutReply(CutOff):
    """A call whose connection broke while its reply arrived. It is recorded as a `cut_off`.

    partial_reply   the part of the reply that came before the connection broke
    """

    def __init__(self, partial_reply: Reply):
        text = partial_reply.text + counted_text_of(partial_reply.tool_calls)
        super().__init__("the connection broke in mid-reply (injected)", partial=text, injected=True)
        self.partial_reply = partial_reply


class AskerDies(CutReply):
    """The connection broke because the process that asked died while the reply arrived."""

    def die(self) -> NoReturn:
        """Kill the process that asked, which has a part of the reply.

        Raises:
            NotImplementedError: Always here; an asker that can die raises its exception.
        """
        raise NotImplementedError


def halve(reply: Reply) -> Reply:
    """Return a reply that holds the first half of this reply's characters.

    Args:
        reply: The whole reply.

    Returns:
        A reply of half its characters: first of its text, then of its tool calls one after another.
    """
    characters = (len(reply.text) + sum(len(call.arguments) for call in reply.tool_calls)) // 2
    text, calls = reply.text[:characters], list[ToolCall]()
    characters -= len(text)
    for call in reply.tool_calls if len(text) == len(reply.text) else ():
        calls.append(replace(call, arguments=call.arguments[:characters]))
        characters -= len(call.arguments)
        if characters <= 0:
            break
    return Reply(text, reply.finish, tool_calls=tuple(calls))
