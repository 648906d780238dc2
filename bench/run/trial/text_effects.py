"""The effects of faults on a text: on a reply, an input, or a write to the state (`bench.run.trial.effects`)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from bench.run.answers.exchanged import exchange
from bench.run.answers.places import FieldPath, value_at
from bench.run.trial.effects import CONTENT_POINTS, Target, TextEffect, dump
from bench.scenario import Json, schema_of


def missing_field(target: Target, draw: Random) -> str | None:
    """Return the output without one required field."""
    paths = list(_required_paths(target))
    if not paths:
        return None
    value = copy.deepcopy(target.value)
    *parents, name = draw.choice(paths)
    del value_at(value, tuple(parents))[name]
    return dump(value)


def wrong_type(target: Target, draw: Random) -> str | None:
    """Return the output with a wrong type in one required field: a scalar becomes an object, and an object or a list a text."""
    paths = list(_required_paths(target))
    if not paths:
        return None
    value = copy.deepcopy(target.value)
    *parents, name = draw.choice(paths)
    parent = value_at(value, tuple(parents))
    parent[name] = "see above" if isinstance(parent[name], dict | list) else {"value": parent[name]}
    return dump(value)


def truncate(target: Target, draw: Random) -> str | None:
    """Return the text, cut off after 30% to 90% of its characters. Trailing blanks and backticks do not count."""
    content = target.text.rstrip().rstrip("`").rstrip()
    if len(content) < 2:
        return None
    return content[: max(1, int(len(content) * draw.uniform(0.3, 0.9)))]


def not_json(target: Target, draw: Random) -> str | None:
    """Return an answer in prose, as by a model that ignores the form."""
    if isinstance(target.value, dict) and target.value:
        return "Here is what I found about " + ", ".join(name.replace("_", " ") for name in target.value) + "."
    return draw.choice(("As discussed above.", "Let me think about this step by step."))


def empty(target: Target, _: Random) -> str | None:
    """Return an empty text."""
    return "" if target.text else None


def refusal(_: Target, draw: Random) -> str | None:
    """Return a refusal as a model writes it."""
    return draw.choice(("I'm sorry, but I can't help with that.", "I cannot assist with this request."))


def wrong_value(target: Target, draw: Random) -> str | None:
    """Return an output that is valid by schema, plausible, and wrong: one of the pack's wrong outputs, else the output with one
    value exchanged."""
    others = [output for output in target.wrong_outputs if output != target.value]
    return dump(draw.choice(others)) if others else _with_one_value_exchanged(target, draw)


def says_no(target: Target, _: Random) -> str | None:
    """Return a validating subtask's output with each `true` changed to `false`, so that it rejects the output that it
    judges."""
    negated = _negate(target.value) if target.validates else target.value
    return dump(negated) if negated != target.value else None


def stale(target: Target, draw: Random) -> str | None:
    """Return the version before. If there was none, return the value with each list cut to its first half, or the first half of
    a plain text's lines."""
    if target.earlier is not None and target.earlier != target.text:
        return target.earlier
    if target.value is not None:
        halved = _halve(target.value)
        return dump(halved) if halved != target.value else _with_one_value_exchanged(target, draw)
    lines = target.text.splitlines(keepends=True)
    return "".join(lines[: len(lines) // 2]) if target.text else None


def _required_paths(target: Target) -> Iterator[FieldPath]:
    """Yield the paths of the required fields that the value has."""
    if target.schema is None or not isinstance(target.value, dict):
        return
    schema = schema_of(target.schema)
    yield from _required_paths_in(target.value, schema, schema.get("$defs", {}))


def _required_paths_in(value: Json, schema: Any, defs: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the paths of the required fields that a value contains, at any depth."""
    while "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, dict):
        for name, field in schema.get("properties", {}).items():
            if name in value:
                if name in schema.get("required", ()):
                    yield (*path, name)
                yield from _required_paths_in(value[name], field, defs, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _required_paths_in(item, schema.get("items", {}), defs, (*path, index))


def _with_one_value_exchanged(target: Target, draw: Random) -> str | None:
    """Return the output with one value exchanged; None if no other value fits."""
    other = exchange(target.value, target.schema, draw)
    return None if other is None else dump(other)


def _negate(value: Json) -> Json:
    """Return the value with each `true` made `false`."""
    if isinstance(value, list):
        return [_negate(item) for item in value]
    if isinstance(value, dict):
        return {name: _negate(item) for name, item in value.items()}
    return False if value is True else value


def _halve(value: Json) -> Json:
    """Return the value with each list cut to its first half."""
    if isinstance(value, list):
        return [_halve(item) for item in value[: (len(value) + 1) // 2]]
    if isinstance(value, dict):
        return {name: _halve(item) for name, item in value.items()}
    return value


EFFECTS = (
    TextEffect("missing_field", missing_field, points=CONTENT_POINTS, needs_json=True, breaks_form=True),
    TextEffect("wrong_type", wrong_type, points=CONTENT_POINTS, needs_json=True, breaks_form=True),
    TextEffect("truncated", truncate, points=("output", "input"), ends_reply=True, breaks_form=True),
    TextEffect("not_json", not_json, points=("output",), breaks_form=True),
    TextEffect("empty", empty, points=CONTENT_POINTS, breaks_form=True),
    TextEffect("refusal", refusal, points=("output",), breaks_form=True),
    TextEffect("wrong_value", wrong_value, points=CONTENT_POINTS, needs_json=True, from_reference=True),
    TextEffect("says_no", says_no, points=("output",), needs_json=True, alarms=True),
    TextEffect("stale", stale, points=("input", "state")),
)
