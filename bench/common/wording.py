"""Words for people: counts of things, and violations of values from outside, phrased so that a person knows what to write
instead."""

from __future__ import annotations

from collections.abc import Mapping
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
LONGEST_VALUE = 60
"""The most characters of a wrong value that a message shows."""


@dataclass(frozen=True)
class Violation:
    """A violation of a schema. `place` is the path of the value, "" for the whole value; `kind` is pydantic's error type."""

    place: str
    kind: str
    words: str

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


def first_violation(error: ValidationError, kind: str = "") -> Violation:
    """Return the first violation, or the first of this kind if there is one."""
    details = first_violations(error, error.error_count())
    detail = next((detail for detail in details if detail["type"] == kind), details[0])
    return Violation(".".join(str(step) for step in detail["loc"]), detail["type"], _words(detail))


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
