"""What every table of a config has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MOST = 1_000
"""Tables of one kind, names in one list, attempts at one subtask."""


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
