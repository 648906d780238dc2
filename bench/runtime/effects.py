"""What a fault does: one function and one row of EFFECTS each.

A content effect is given the text it strikes (`Target`) and a draw of its own, and returns the text that takes its place. It
returns None where the text cannot carry it, say because a reply without JSON has no field that could be missing: such a fault
is *not applicable*, which its receipt says. It never returns the text unchanged.

A call effect stands around the call: it is given `send`, which makes the call and whatever other faults it has, and returns the
reply, raises a CallFailed in its place, or lets time pass.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from pydantic import ValidationError

from bench.errors import CutOff, RateLimited, ServerFailed, TimedOut
from bench.models.base import Reply, Sleep
from bench.models.tool_calls import ToolCall, text_of
from bench.scenario import Json, Output, schema_of

Point = Literal["output", "input", "call", "state", "tool", "event", "process"]
"""The last three are those of worlds: `bench.runtime.world_effects`."""
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Target:
    """What is struck: a reply's part, an input, or a committed output.

    value           its JSON, None where it is none (a document, a reply that could not be read)
    schema          the output type it should fit, None for a document
    earlier         the text as it stood before, where it did
    wrong_outputs   plausible wrong outputs of the subtask that wrote it, from the pack's wrong answers
    """

    text: str
    value: Json = None
    schema: type[Output] | None = None
    earlier: str | None = None
    wrong_outputs: Sequence[Json] = ()


@dataclass(frozen=True)
class Disturbance:
    """What a call effect may use: the fault's seconds, and a way to let some pass while the call is in flight."""

    seconds: float
    sleep: Sleep


Strike = Callable[[Target, Random], str | None]
Send = Callable[[], Awaitable[Reply]]
Wrap = Callable[[Send, Disturbance], Awaitable[Reply]]


@dataclass(frozen=True)
class Effect:
    """A row of EFFECTS.

    strike      what it does to a text, at the points that have one
    wrap        what it does to a call, at point `call`
    fails       its call ends in a failure: of several such faults each spoils one request, and is noticed at once
    needs_json  it can strike only a subtask's output, never a plain document
    ends_reply  nothing follows what it struck
    """

    points: frozenset[Point]
    strike: Strike | None = None
    wrap: Wrap | None = None
    fails: bool = False
    needs_json: bool = False
    ends_reply: bool = False


def dump(value: Json) -> str:
    """JSON as it stands in the state and in prompts."""
    return json.dumps(value, ensure_ascii=False)


def missing_field(target: Target, draw: Random) -> str | None:
    """One required field is gone."""
    paths = list(_required(target))
    if not paths:
        return None
    value = copy.deepcopy(target.value)
    *parents, name = draw.choice(paths)
    del _at(value, parents)[name]
    return dump(value)


def wrong_type(target: Target, draw: Random) -> str | None:
    """One required field holds an object where its schema wants a scalar, or a text where it wants an object or a list."""
    paths = list(_required(target))
    if not paths:
        return None
    value = copy.deepcopy(target.value)
    *parents, name = draw.choice(paths)
    parent = _at(value, parents)
    parent[name] = "see above" if isinstance(parent[name], dict | list) else {"value": parent[name]}
    return dump(value)


def truncated(target: Target, draw: Random) -> str | None:
    """The text breaks off somewhere in its middle, before its last closing brace."""
    closed = target.text.rstrip().rstrip("`").rstrip()
    if len(closed) < 2:
        return None
    return closed[: max(1, int(len(closed) * draw.uniform(0.3, 0.9)))]


def not_json(target: Target, draw: Random) -> str | None:
    """The same in words, as a model does that forgets the form."""
    if isinstance(target.value, dict) and target.value:
        return "Here is what I found about " + ", ".join(name.replace("_", " ") for name in target.value) + "."
    return draw.choice(("As discussed above.", "Let me think about this step by step."))


def empty(target: Target, _: Random) -> str | None:
    """Nothing at all."""
    return "" if target.text else None


def refusal(_: Target, draw: Random) -> str | None:
    return draw.choice(("I'm sorry, but I can't help with that.", "I cannot assist with this request."))


def wrong_value(target: Target, draw: Random) -> str | None:
    """Valid by schema, plausible, and wrong: one of the pack's wrong outputs, else one value exchanged."""
    others = [output for output in target.wrong_outputs if output != target.value]
    return dump(draw.choice(others)) if others else _one_value_off(target, draw)


def stale(target: Target, draw: Random) -> str | None:
    """As it stood earlier: the version before, or where there was none, without its later half."""
    if target.earlier is not None and target.earlier != target.text:
        return target.earlier
    if target.value is not None:
        halved = _halved(target.value)
        return dump(halved) if halved != target.value else _one_value_off(target, draw)
    lines = target.text.splitlines(keepends=True)
    return "".join(lines[: len(lines) // 2]) if target.text else None


async def rate_limit(_: Send, fault: Disturbance) -> Reply:
    """429, with the fault's seconds in Retry-After."""
    raise RateLimited("429 (injected)", retry_after=fault.seconds, injected=True)


async def server_error(_: Send, __: Disturbance) -> Reply:
    raise ServerFailed("500 (injected)", injected=True)


async def timeout(_: Send, fault: Disturbance) -> Reply:
    """Nothing comes, and after the fault's seconds nobody waits any longer."""
    await fault.sleep(fault.seconds)
    raise TimedOut(f"no reply within {fault.seconds:g} s (injected)", injected=True)


class CutReply(CutOff):
    """`begun` is what came of the reply before the connection broke. It is recorded as what it is to the call, a `cut_off`."""

    def __init__(self, begun: Reply):
        said = begun.text + text_of(begun.tool_calls)
        super().__init__("the connection broke in mid-reply (injected)", partial=said, injected=True)
        self.begun = begun


async def cut_off(send: Send, _: Disturbance) -> Reply:
    """Half of the reply comes: of its text, and then of the arguments of its tool calls."""
    raise CutReply(halved(await send()))


def halved(reply: Reply) -> Reply:
    """The first half of what a reply says, by characters: its text, then its tool calls one after another."""
    left = (len(reply.text) + sum(len(call.arguments) for call in reply.tool_calls)) // 2
    text, begun = reply.text[:left], list[ToolCall]()
    left -= len(text)
    for call in reply.tool_calls if len(text) == len(reply.text) else ():
        begun.append(replace(call, arguments=call.arguments[:left]))
        left -= len(call.arguments)
        if left <= 0:
            break
    return Reply(text, reply.finish, tool_calls=tuple(begun))


async def slow(send: Send, fault: Disturbance) -> Reply:
    await fault.sleep(fault.seconds)
    return await send()


async def filtered(_: Send, __: Disturbance) -> Reply:
    """The provider refuses to answer, in the model's place."""
    return Reply("", finish="content_filter")


CONTENT: frozenset[Point] = frozenset({"output", "input", "state"})
CALL: frozenset[Point] = frozenset({"call"})
EFFECTS: dict[str, Effect] = {
    "missing_field": Effect(CONTENT, missing_field, needs_json=True),
    "wrong_type": Effect(CONTENT, wrong_type, needs_json=True),
    "truncated": Effect(frozenset({"output", "input"}), truncated, ends_reply=True),
    "not_json": Effect(frozenset({"output"}), not_json),
    "empty": Effect(CONTENT, empty),
    "refusal": Effect(frozenset({"output", "call"}), refusal, filtered),
    "wrong_value": Effect(CONTENT, wrong_value, needs_json=True),
    "stale": Effect(frozenset({"input", "state"}), stale),
    "rate_limit": Effect(CALL, wrap=rate_limit, fails=True),
    "server_error": Effect(CALL, wrap=server_error, fails=True),
    "timeout": Effect(CALL, wrap=timeout, fails=True),
    "cut_off": Effect(CALL, wrap=cut_off, fails=True),
    "slow": Effect(CALL, wrap=slow),
}


def _required(target: Target) -> Iterator[Path]:
    """Paths of the fields that the value has and its schema requires."""
    if target.schema is None or not isinstance(target.value, dict):
        return
    schema = schema_of(target.schema)
    yield from _required_in(target.value, schema, schema.get("$defs", {}))


def _required_in(value: Json, schema: Any, defs: Any, path: Path = ()) -> Iterator[Path]:
    while "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, dict):
        for name, field in schema.get("properties", {}).items():
            if name in value:
                if name in schema.get("required", ()):
                    yield (*path, name)
                yield from _required_in(value[name], field, defs, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _required_in(item, schema.get("items", {}), defs, (*path, index))


def _leaves(value: Json, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _leaves(item, (*path, key))
    else:
        yield path


def _at(value: Json, path: Sequence[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def _one_value_off(target: Target, draw: Random) -> str | None:
    """The value with one leaf exchanged for another that its schema allows, where there is such a leaf."""
    paths = [path for path in _leaves(target.value) if path]
    draw.shuffle(paths)
    for path in paths:
        for other in _alternatives(target, path):
            value = copy.deepcopy(target.value)
            _at(value, path[:-1])[path[-1]] = other
            if _fits(target.schema, value):
                return dump(value)
    return None


def _alternatives(target: Target, path: Path) -> list[Json]:
    leaf = _at(target.value, path)
    if isinstance(leaf, bool):
        return [not leaf]
    if isinstance(leaf, int | float):
        return [leaf + 1, leaf - 1, leaf / 2, leaf / 2 + 0.25]
    if not isinstance(leaf, str):
        return []
    return [other for other in _enum_members(target.schema) if other != leaf] + [f"not {leaf}"]


def _enum_members(schema: type[Output] | None) -> list[str]:
    """Every text that stands in an enumeration of the schema; whether one fits at a place is for the schema to say."""
    found: list[str] = []
    stack: list[Any] = [schema_of(schema)] if schema else []
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            found += [member for member in node.get("enum", ()) if isinstance(member, str)]
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return found


def _fits(schema: type[Output] | None, value: Json) -> bool:
    if schema is None:
        return True
    try:
        schema.model_validate(value)
    except ValidationError:
        return False
    return True


def _halved(value: Json) -> Json:
    """Every list without its later half: what had been found by half time."""
    if isinstance(value, list):
        return [_halved(item) for item in value[: (len(value) + 1) // 2]]
    if isinstance(value, dict):
        return {name: _halved(item) for name, item in value.items()}
    return value
