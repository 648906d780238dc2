"""Words for people: counts of things, and violations of values from outside, phrased so that a person knows what to write
instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

PHRASES = {
    "missing": "is missing",
    "int_parsing": "must be a whole number, not {input}",
    "int_type": "must be a whole number, not {input}",
    "int_from_float": "must be a whole number, not {input}",
    "float_parsing": "must be a number, not {input}",
    "float_type": "must be a number, not {input}",
    "finite_number": "must be a finite number, not {input}",
    "bool_parsing": "must be true or false, not {input}",
    "bool_type": "must be true or false, not {input}",
    "string_type": "must be a text, not {input}",
    "tuple_type": "must be a list, not {input}",
    "list_type": "must be a list, not {input}",
    "dict_type": "must be a table, not {input}",
    "mapping_type": "must be a table, not {input}",
    "model_type": "must be a table, not {input}",
    "model_attributes_type": "must be a table, not {input}",
    "greater_than_equal": "must be at least {ge}, not {input}",
    "greater_than": "must be more than {gt}, not {input}",
    "less_than_equal": "must be at most {le}, not {input}",
    "less_than": "must be less than {lt}, not {input}",
    "too_short": "must hold at least {min_length}, and holds {actual_length}",
    "too_long": "may hold at most {max_length}",
    "string_too_long": "may have at most {max_length} characters",
    "literal_error": "must be {expected}, not {input}",
    "enum": "must be {expected}, not {input}",
    "union_tag_invalid": "{discriminator} must be one of {expected_tags}, not '{tag}'",
    "union_tag_not_found": "lacks its {discriminator}",
    "string_pattern_mismatch": "does not fit {pattern}: {input}",
}
"""Pydantic's error types -> our words. An error of another type keeps pydantic's words."""
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
"""Matches a key that TOML needs no quotes for."""
_ALTERNATIVE = re.compile(r"must be (.*), not (.*)", re.DOTALL)
LONGEST_VALUE = 60
"""The most characters of a wrong value that a message shows."""


@dataclass(frozen=True)
class Violation:
    """A violation of a schema. `place` is the path of the value, "" for the whole value; `kind` is pydantic's error type;
    `path` has the keys and numbers of the place."""

    place: str
    kind: str
    words: str
    path: tuple[str | int, ...]

    @property
    def line(self) -> str:
        """The place and the words, in one line."""
        return f"{self.place}: {self.words}" if self.place else self.words


def plural(count: int, noun: str) -> str:
    """Return a count with its noun in singular or plural."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_violations(error: ValidationError, most: int = 1) -> list[ErrorDetails]:
    """Return the first `most` violations, in pydantic's order. Pydantic makes the list of all violations first; that list is
    short enough because input from outside is bounded before it is validated (`bench.common.bounds`)."""
    return error.errors(include_url=False)[:most]


def first_violation(error: ValidationError, kind: str = "", *, value: object = None) -> Violation:
    """Return the first violation, or the first of this kind if there is one.

    Args:
        error: What pydantic raised.
        kind: Pydantic's error type that comes first.
        value: The value that was validated, as it was read from TOML. If it is given, the place is as TOML writes it, with
            none of pydantic's names for the types of a union; what all types of a union say of one value is one violation.
    """
    details = first_violations(error, error.error_count())
    detail = next((detail for detail in details if detail["type"] == kind), details[0])
    if value is None:
        return Violation(".".join(map(str, detail["loc"])), detail["type"], _words(detail), detail["loc"])
    path, union_at = _path_in(value, detail)
    words = _words(detail)
    if detail["type"] != kind and union_at is not None:
        prefix = detail["loc"][:union_at]
        branches = [branch for branch in details if branch["loc"][:union_at] == prefix and branch["type"] != "none_required"]
        detail = max(branches, key=lambda branch: (len(_path_in(value, branch)[0]), not _is_of_type(branch)), default=detail)
        path = _path_in(value, detail)[0]
        words = _joined_words([branch for branch in branches if _path_in(value, branch)[0] == path], detail)
    keys = (key if BARE_KEY.fullmatch(key) else f'"{key}"' for key in map(str, path))
    return Violation(".".join(keys), detail["type"], words, path)


def _joined_words(branches: Sequence[ErrorDetails], first: ErrorDetails) -> str:
    """Return the words of the types of a union on one value: the types that it can have, or what is wrong with a value of the
    right type."""
    if not _is_of_type(first):
        return _words(first)
    matches = [_ALTERNATIVE.fullmatch(words) for words in dict.fromkeys(map(_words, branches))]
    alternatives = [match for match in matches if match]
    if len(alternatives) < 2:
        return _words(first)
    return f"must be {' or '.join(match[1] for match in alternatives)}, not {alternatives[0][2]}"


def _path_in(value: object, detail: ErrorDetails) -> tuple[tuple[str | int, ...], int | None]:
    """Return the path of a violation in the validated value, and where in pydantic's path its first own name is, such as the
    type of a union; None if there is none."""
    path, first_own = list[str | int](), None
    steps = detail["loc"]
    for number, step in enumerate(steps):
        is_last = number == len(steps) - 1
        if isinstance(step, int) and isinstance(value, Sequence) and not isinstance(value, str):
            path.append(step)
            value = value[step] if step < len(value) else None
        elif isinstance(value, Mapping) and step in value:
            path.append(step)
            value = value[step]
        elif is_last and detail["type"] == "missing":
            path.append(step)
        elif first_own is None:
            first_own = number
    return tuple(path), first_own


def _is_of_type(detail: ErrorDetails) -> bool:
    """Return whether a violation says that the value is of another type."""
    return detail["type"].endswith("_type")


def _words(detail: ErrorDetails) -> str:
    """Return the words for a violation."""
    phrase = PHRASES.get(detail["type"])
    if phrase is None:
        return detail["msg"].removeprefix("Value error, ")
    context: Mapping[str, Any] = detail.get("ctx", {})
    try:
        return phrase.format_map({**context, "input": _show(detail["input"])})
    except KeyError:  # another version of pydantic with another context: use its words
        return detail["msg"]


def _show(value: object) -> str:
    """Return a value as a short text."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
