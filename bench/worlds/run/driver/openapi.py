"""Describe a world's server as OpenAPI 3.1, with one operation for each tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from bench.worlds.run.driver.tools import Offer

ERRORS = {
    "403": "declined, or not allowed",
    "409": "a version is not the one that was expected, or the key is that of another call",
    "422": "the arguments do not fit",
    "429": "too many calls in this minute, or in this day",
    "503": "the tool failed; it may have happened",
}
KEY_HEADER = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}, "required": False}
VERSIONS_HEADER = {
    "name": "If-Match",
    "in": "header",
    "schema": {"type": "string"},
    "required": False,
    "description": "thing=version, thing=version: the versions that they must have",
}


def openapi(offers: Iterable[Offer], root: str) -> dict[str, Any]:
    """Return the OpenAPI document of these tools at this address."""
    schemas: dict[str, Any] = {
        "Error": {
            "type": "object",
            "properties": {
                "error": {"type": "object", "properties": {"code": {"type": "string"}, "message": {"type": "string"}}}
            },
        }
    }
    paths = {f"/tools/{offer.name}": {"post": _operation(offer, schemas)} for offer in offers}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tools", "version": "1"},
        "servers": [{"url": root}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(offer: Offer, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI operation of a tool. The schemas of its arguments and result are added to `schemas`."""
    result = _schema(offer.result, f"{offer.name}.result", schemas) if offer.result else {}
    versions = {"type": "object", "additionalProperties": {"type": "integer"}}
    given = {"type": "object", "properties": {"result": result, "versions": versions}, "required": ["result"]}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    arguments = _schema(offer.arguments, f"{offer.name}.arguments", schemas)
    return {
        "operationId": offer.name,
        "description": offer.description,
        "parameters": [KEY_HEADER, VERSIONS_HEADER],
        "requestBody": {"required": True, "content": {"application/json": {"schema": arguments}}},
        "responses": {
            "200": {"description": "done", "content": {"application/json": {"schema": given}}},
            **{status: {"description": text, "content": error} for status, text in ERRORS.items()},
        },
    }


def _schema(model: type[BaseModel], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """Add the model's schema, and all schemas that it refers to, to `schemas`. Return a reference to it."""
    schema = model.model_json_schema(ref_template=f"#/components/schemas/{name}.{{model}}")
    for inner, definition in schema.pop("$defs", {}).items():
        schemas[f"{name}.{inner}"] = definition
    schemas[name] = schema
    return {"$ref": f"#/components/schemas/{name}"}
