"""The baseline: an answer by keyword rules without a model. If it is right, the pack is too easy to distinguish models."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.scenario import Json, schema_of

from .rows import ROW
from .schemas import Answer


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """Return an answer whose fields are found in the row's words. If the words give no value for a field, return no answer."""
    values = {name: _field_value(name, field, documents[ROW]) for name, field in schema_of(Answer)["properties"].items()}
    return {} if None in values.values() else {"answer": values}


def _field_value(name: str, field: Mapping[str, Json], text: str) -> Json:
    """Return a field's value: the first word of its vocabulary in the text, the first number, true if the text has the field's
    name, or the text of the first input field. Return None if there is none."""
    if "enum" in field:
        positions = {word: _position(word, text) for word in field["enum"]}
        return min((word for word in positions if positions[word] >= 0), key=lambda word: positions[word], default=None)
    if field["type"] == "boolean":
        return True if _position(name.replace("_", " "), text) >= 0 else None
    if field["type"] in ("integer", "number"):
        number = re.search(r"-?\d+(\.\d+)?", text)
        return number and (round(float(number[0])) if field["type"] == "integer" else float(number[0]))
    return text.partition("\n")[0].partition(": ")[2]


def _position(words: str, text: str) -> int:
    """Return the index of words in a text, whatever their case; -1 if the text does not have them."""
    match = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)
    return match.start() if match else -1
