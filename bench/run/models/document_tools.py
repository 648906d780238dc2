"""The two tools by which our agents read a task's documents: their names, and what a call of them names."""

from __future__ import annotations

import json

LIST, READ = "list_documents", "read_document"
NAME = "name"


def name_in(arguments: str) -> str | None:
    """Return the document that a call's arguments name; None if they name none."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    name = given.get(NAME) if isinstance(given, dict) else None
    return name if isinstance(name, str) else None
