"""An answer by keyword rules alone: the floor under every score. Where it is right, the pack is too easy to tell anything."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.scenario import Json, schema_of

from .rows import ROW
from .schemas import Answer


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """Each field by the words of the row; no answer where these say nothing of one, since a guess is no keyword."""
    values = {name: _field_value(name, field, documents[ROW]) for name, field in schema_of(Answer)["properties"].items()}
    return {} if None in values.values() else {"answer": values}


def _field_value(name: str, field: Mapping[str, Json], text: str) -> Json:
    """Of a vocabulary the word that stands first; the first number; true where the field's name stands; the first field."""
    if "enum" in field:
        places = {word: _place(word, text) for word in field["enum"]}
        return min((word for word in places if places[word] >= 0), key=lambda word: places[word], default=None)
    if field["type"] == "boolean":
        return True if _place(name.replace("_", " "), text) >= 0 else None
    if field["type"] in ("integer", "number"):
        number = re.search(r"-?\d+(\.\d+)?", text)
        return number and (round(float(number[0])) if field["type"] == "integer" else float(number[0]))
    return text.partition("\n")[0].partition(": ")[2]


def _place(words: str, text: str) -> int:
    """Where words stand in a text, whatever their case; -1 where they don't."""
    match = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)
    return match.start() if match else -1
