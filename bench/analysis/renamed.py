"""Columns of a run's frames that had another name in an earlier version: whoever asks for one by its old name is told the new
one."""

from __future__ import annotations

from typing import Any

import pandas as pd

RENAMED = {"fault": "plan", "useful": "in_answer", "ended": "finish", "recovered": "accepted_again"}
"""Name in an earlier version -> name now."""


class Frame(pd.DataFrame):
    """A frame of a run, as it was loaded. What is made of it is a plain frame."""

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except KeyError:
            names = key if isinstance(key, list) else [key]
            if old := next((name for name in names if isinstance(name, str) and name in RENAMED), None):
                raise KeyError(f"the column '{old}' is called '{RENAMED[old]}' now") from None
            raise
