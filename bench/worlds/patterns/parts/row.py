"""A durable row with a version: each step's state, changed by compare-and-swap alone."""

from __future__ import annotations

from typing import Any

from bench.worlds.runtime.process import Store

NAME = "row"


class DurableRow:
    def __init__(self, store: Store):
        self._store = store

    @property
    def version(self) -> int:
        return int(self._read()["version"])

    def state(self, step: str) -> str:
        """ "open" where no transition of it was written."""
        return str(self._read()["states"].get(step, "open"))

    def swap(self, step: str, state: str, seen: int) -> bool:
        """Write a transition that was decided on the row's version `seen`; False where the row has moved since, and nothing is
        written."""
        row = self._read()
        if row["version"] != seen:
            return False
        self._store.put(NAME, {"version": seen + 1, "states": {**row["states"], step: state}})
        return True

    def _read(self) -> dict[str, Any]:
        row: dict[str, Any] = self._store.get(NAME, {"version": 0, "states": {}})
        return row
