"""The `response_format` of a chat completion: how an endpoint is asked to keep a reply in a form.

    json_object          any JSON object
    json_schema          the schema of the answer, as OpenAI documents it, and as vLLM, Ollama and llama.cpp's own server take
                         it
    json_object_schema   the same schema as llama.cpp's Python server takes it

An endpoint that silently ignores the field shows that only by its natural failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.run.openai.settings import ResponseFormat
from bench.scenario import CODE

NAME = "answer"
PROBE_WORDS = 'Reply with this JSON: {"ok": true}'
PROBE_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def response_format(wanted: ResponseFormat | None, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the value of the field `response_format`. None leaves the field out: also if a schema is wanted and the request
    has none, such as a framework's own request, which may want no JSON."""
    if wanted == "json_object":
        return {"type": "json_object"}
    if wanted is None or schema is None:
        return None
    if wanted == "json_object_schema":
        return {"type": "json_object", "schema": close_schema(schema)}
    return {"type": "json_schema", "json_schema": {"name": NAME, "schema": close_schema(schema), "strict": True}}


def close_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as strict structured output requires it: each object lists and requires all its fields, and allows no
    others.

    https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. An optional field must then be written too.
    Its default is dropped, since it would never be used, and so is our own word for code, which no endpoint knows.
    """
    parts = {key: _closed_part(key, part) for key, part in schema.items() if key not in ("default", CODE)}
    return parts | _all_fields(schema)


def _closed_part(key: str, part: Any) -> Any:
    if key in ("properties", "$defs"):
        return {name: close_schema(schema) for name, schema in part.items()}
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [close_schema(schema) for schema in part]
    return close_schema(part) if key == "items" and isinstance(part, Mapping) else part


def _all_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "object":
        return {}
    return {"required": list(schema.get("properties", {})), "additionalProperties": False}
