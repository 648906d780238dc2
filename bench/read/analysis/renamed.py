"""Frame columns that had another name in an earlier version. An error tells a reader who uses an old name the new one."""

from __future__ import annotations

from typing import Any

import pandas as pd

RENAMED = {"fault": "plan", "useful": "in_answer", "ended": "finish", "recovered": "accepted_again"}
"""Old name -> new name."""


class Frame(pd.DataFrame):
    """A frame of a run, as loaded. Frames made from it are plain frames."""

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except KeyError:
            names = key if isinstance(key, list) else [key]
            if old := next((name for name in names if isinstance(name, str) and name in RENAMED), None):
                raise KeyError(f"the column '{old}' is called '{RENAMED[old]}' now") from None
            raise
