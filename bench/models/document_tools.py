"""The two tools by which our agents read a task's documents: their definitions, and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LIST, READ = "list_documents", "read_document"
NAME = "name"


def offered() -> list[dict[str, Any]]:
    """Return the tools as a chat completion declares them."""
    name = {"type": "object", "properties": {NAME: {"type": "string"}}, "required": [NAME]}
    return [
        _function(LIST, "The names of the documents there are.", {"type": "object", "properties": {}}),
        _function(READ, "The whole text of one document.", name),
    ]


def called(documents: Mapping[str, str], tool: str, arguments: str) -> tuple[str, bool]:
    """Return the result of a tool call, and whether it succeeded. The result of a call that cannot be made says why."""
    if tool == LIST:
        return "\n".join(documents), True
    if tool != READ:
        return f"There is no tool '{tool}'; the tools are {LIST} and {READ}.", False
    name = name_in(arguments)
    if name is None:
        return f'The arguments of {READ} must be {{"{NAME}": the name of a document}}.', False
    if name not in documents:
        return f"There is no document '{name}'; the documents are {', '.join(documents)}.", False
    return documents[name], True


def name_in(arguments: str) -> str | None:
    """Return the document that a call's arguments name; None if they name none."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    name = given.get(NAME) if isinstance(given, dict) else None
    return name if isinstance(name, str) else None


def _function(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
