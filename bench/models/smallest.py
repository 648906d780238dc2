"""The smallest value that fits a JSON schema: what a simulated model says where there is no reference to say it from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.scenario import Json


def smallest(schema: Mapping[str, Any]) -> Json:
    """Required properties alone, empty lists, texts of the least length, numbers at their lower bound. No pattern is read."""
    return _smallest(schema, schema.get("$defs", {}))


def _smallest(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Json:
    if "$ref" in schema:
        return _smallest(defs[schema["$ref"].rsplit("/", 1)[-1]], defs)
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            return _smallest(schema[word][0], defs)
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    match schema.get("type", "object"):
        case "object":
            properties = schema.get("properties", {})
            return {name: _smallest(properties.get(name, {}), defs) for name in schema.get("required", ())}
        case "array":
            return [_smallest(schema.get("items", {}), defs)] * int(schema.get("minItems", 0))
        case "string":
            return "x" * max(1, int(schema.get("minLength", 1)))
        case "integer" | "number" as kind:
            low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1 if "exclusiveMinimum" in schema else 0)
            return int(low) if kind == "integer" else float(low)
        case "boolean":
            return False
        case _:
            return None
