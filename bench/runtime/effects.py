"""What a fault can do, as the runtime knows it. The effects themselves are parts: `bench.effects` has ours.

A text effect is given the text it strikes (`Target`) and a draw of its own, and returns the text that takes its place. It
returns None where the text cannot carry it, say because a reply without JSON has no field that could be missing: such a fault
is *not applicable*, which its receipt says. It never returns the text unchanged.

A call effect stands around the call: it is given `send`, which makes the call and whatever other faults it has, and returns the
reply, raises a CallFailed in its place, or lets time pass. Those of worlds are `bench.worlds.runtime.effects`'.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import ClassVar, Literal, NoReturn, TypeVar, get_args

from bench.errors import CutOff
from bench.models.base import Reply, Sleep
from bench.models.tool_calls import ToolCall, counted_text_of
from bench.registry import Part, Registry, module_of
from bench.scenario import Json, Output

Point = Literal["output", "input", "call", "state", "tool", "event", "process"]
"""Where a fault strikes; the last three are in worlds."""
POINTS: tuple[Point, ...] = get_args(Point)
CONTENT: tuple[Point, ...] = ("output", "input", "state")
WORLD_POINTS: tuple[Point, ...] = ("tool", "event", "process")


@dataclass(frozen=True)
class Target:
    """What is struck: a reply's part, an input, or a committed output.

    text            what is struck, as it stands
    value           its JSON, None where it is none (a document, a reply that could not be read)
    schema          the output type it should fit, None for a document
    earlier         the text as it stood before, where it did
    wrong_outputs   plausible wrong outputs of the subtask that wrote it, from the pack's wrong answers
    validates       whether it is the output of a subtask that can find an earlier one's output wrong
    """

    text: str
    value: Json = None
    schema: type[Output] | None = None
    earlier: str | None = None
    wrong_outputs: Sequence[Json] = ()
    validates: bool = False


@dataclass(frozen=True)
class Disturbance:
    """What a call effect may use.

    seconds   the fault's seconds, as the config has them
    sleep     lets seconds pass on the trial's clock while the call is in flight
    """

    seconds: float
    sleep: Sleep


TextStrike = Callable[[Target, Random], str | None]
Send = Callable[[], Awaitable[Reply]]
CallStrike = Callable[[Send, Disturbance], Awaitable[Reply]]


@dataclass(frozen=True)
class Effect(Part):
    """What the entry of every effect says.

    An effect is found by its name and a point: one name may do one thing to a call and another to a tool. The name is a key of
    draws: it is never changed.

    points          where it can strike
    on              which calls of tools it can strike, at the points that have one; or what a person is asked, or answers; or
                    the claims of workers; "" where it strikes none of these
    from_reference  it draws from the pack's reference or its wrong answers, which are then part of what determines a trial
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
        """Return the pairs of name and point by which it is found."""
        return [(self.name, point) for point in self.points]


@dataclass(frozen=True)
class TextEffect(Effect):
    """An effect on a reply, on what is read, or on what is written to the state.

    strike        (target, generator) -> the text that takes the target's place, never the same text; None where the text cannot
                  carry the effect, and the fault is then not applicable. It draws from this generator alone
    needs_json    it can strike only a subtask's output, never a plain document
    ends_reply    nothing follows what it struck
    breaks_form   what it leaves is no valid output, whatever the subtask
    alarms        it makes a validating subtask find an earlier output wrong, by which it is noticed, and strikes no other
    """

    possible: ClassVar[tuple[Point, ...]] = CONTENT
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

    strike          (send, disturbance) -> the reply. It awaits `send()` for the call with whatever other faults it has, raises
                    a `CallFailed` with `injected=True` in its place, or lets time pass
    fails           the call ends in a failure: of several such faults each spoils one request, and is noticed at once
    changes_reply   it gives a reply in the model's place: whether anyone notices is open, and it comes after all failures
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


EFFECTS: Registry[Effect] = Registry("effect", Effect, "bench.effects.texts:EFFECTS", "bench.effects.calls:EFFECTS")
E = TypeVar("E", bound=Effect)


def effect_at(name: str, point: Point, kind: type[E]) -> E:
    """Return the effect of this name at this point, which a config has made sure of.

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
    """Return where an effect of this name can strike.

    Args:
        name: A name, of an effect or not.

    Returns:
        Its points in the order of `POINTS`; empty where there is no such effect.
    """
    return [point for point in POINTS if (name, point) in EFFECTS]


dump = json.JSONEncoder(ensure_ascii=False).encode
"""JSON as it stands in the state and in prompts."""


class CutReply(CutOff):
    """A call whose connection broke in mid-reply. It is recorded as what it is to the call, a `cut_off`.

    begun   what came of the reply before the connection broke
    """

    def __init__(self, begun: Reply):
        text = begun.text + counted_text_of(begun.tool_calls)
        super().__init__("the connection broke in mid-reply (injected)", partial=text, injected=True)
        self.begun = begun


class AskerDies(CutReply):
    """The connection broke because whoever asked died in mid-reply."""

    def die(self) -> NoReturn:
        """End whoever asked: it has what came of the reply, and dies now.

        Raises:
            NotImplementedError: Here; a wing whose askers can die raises its exception.
        """
        raise NotImplementedError


def halved(reply: Reply) -> Reply:
    """Return the first half of what a reply says.

    Args:
        reply: The whole reply.

    Returns:
        A reply of half its characters: first of its text, then of its tool calls one after another.
    """
    left = (len(reply.text) + sum(len(call.arguments) for call in reply.tool_calls)) // 2
    text, begun = reply.text[:left], list[ToolCall]()
    left -= len(text)
    for call in reply.tool_calls if len(text) == len(reply.text) else ():
        begun.append(replace(call, arguments=call.arguments[:left]))
        left -= len(call.arguments)
        if left <= 0:
            break
    return Reply(text, reply.finish, tool_calls=tuple(begun))
