"""A durable, versioned row: each step's state, changed only by compare-and-swap."""

from __future__ import annotations

from typing import Any

from bench.worlds.run.runtime.process import Store

ROW_NAME = "row"


class DurableRow:
    """A row of the store with the state of each step and a version."""

    def __init__(self, store: Store):
        self._store = store

    @property
    def version(self) -> int:
        """The present version: the number of transitions that were written."""
        return int(self._read()["version"])

    def state(self, step: str) -> str:
        """Return the step's state; "open" if it had no transition."""
        return str(self._read()["states"].get(step, "open"))

    def swap(self, step: str, state: str, version_read: int) -> bool:
        """Write a transition that was decided on the version `version_read`. Return False, and write nothing, if the row has
        changed since."""
        row = self._read()
        if row["version"] != version_read:
            return False
        self._store.put(ROW_NAME, {"version": version_read + 1, "states": {**row["states"], step: state}})
        return True

    def _read(self) -> dict[str, Any]:
        """Return the stored row; an empty row if none is stored."""
        row: dict[str, Any] = self._store.get(ROW_NAME, {"version": 0, "states": {}})
        return row
