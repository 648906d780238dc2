"""The two tools with which our agents read a task's documents."""

from __future__ import annotations

import json

LIST, READ = "list_documents", "read_document"
NAME = "name"


def name_in(arguments: str) -> str | None:
    """Return the name of the document in a call's arguments; None if they name none."""
    try:
        fields = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    name = fields.get(NAME) if isinstance(fields, dict) else None
    return name if isinstance(name, str) else None
