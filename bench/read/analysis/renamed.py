"""Former names of frame columns. A reader who uses a former name gets an error that tells the new name."""

from __future__ import annotations

from typing import Any

import pandas as pd

RENAMED = {"fault": "plan", "useful": "in_answer", "ended": "finish", "recovered": "accepted_again"}
"""Old name -> new name."""


class Frame(pd.DataFrame):
    """A frame of a run, as it was loaded. Frames that are made from it are plain pandas frames."""

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except KeyError:
            names = key if isinstance(key, list) else [key]
            if old := next((name for name in names if isinstance(name, str) and name in RENAMED), None):
                raise KeyError(f"the column '{old}' is called '{RENAMED[old]}' now") from None
            raise
