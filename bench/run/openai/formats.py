"""The field `response_format` of a chat completion, which asks an endpoint to hold a reply to a form.

    json_object          any JSON object
    json_schema          the schema of the answer, as OpenAI documents it, and as vLLM, Ollama and llama.cpp's own server take
                         it
    json_object_schema   the same schema as llama.cpp's Python server takes it

If an endpoint silently ignores the field, only its failures without any fault show that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.run.openai.settings import ResponseFormat

SCHEMA_NAME = "answer"
PROBE_PROMPT = 'Reply with this JSON: {"ok": true}'
PROBE_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def response_format(kind: ResponseFormat | None, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the value of the field `response_format`; None to leave the field out. The field is left out too if a schema is
    wanted and the request has none: a framework's own request may want no JSON."""
    if kind == "json_object":
        return {"type": "json_object"}
    if kind is None or schema is None:
        return None
    if kind == "json_object_schema":
        return {"type": "json_object", "schema": close_schema(schema)}
    return {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": close_schema(schema), "strict": True}}


def close_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as strict structured output requires it: each object lists and requires all its fields, and allows no
    others.

    https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. The model must then write optional fields too.
    Their defaults are dropped, since they would never be used, and so are keywords that begin with `x-`, such as our own for
    code (`bench.task.CODE`): no endpoint knows these.
    """
    parts = {key: _closed_part(key, part) for key, part in schema.items() if key != "default" and not key.startswith("x-")}
    return parts | _all_fields(schema)


def _closed_part(key: str, part: Any) -> Any:
    """Return the value of a schema's key with all schemas in it closed."""
    if key in ("properties", "$defs"):
        return {name: close_schema(schema) for name, schema in part.items()}
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [close_schema(schema) for schema in part]
    return close_schema(part) if key == "items" and isinstance(part, Mapping) else part


def _all_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that require all fields of an object and forbid others; empty if the schema is for no object."""
    if schema.get("type") != "object":
        return {}
    return {"required": list(schema.get("properties", {})), "additionalProperties": False}
