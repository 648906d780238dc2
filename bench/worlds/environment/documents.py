"""What was read of a world, as a document that a judgment is shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


def as_document(value: str | BaseModel | Mapping[str, Any]) -> str:
    """The same text for the same state, whoever asks."""
    if isinstance(value, str):
        return value
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, indent=1)
