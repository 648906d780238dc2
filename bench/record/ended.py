"""A collection of the trials of a run that have ended, in so little memory that it holds millions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

RECENT = 2**16
"""The number of ids that are kept as texts, of about a hundred bytes each, before they are sorted into an array."""


class EndedTrials(Collection[str]):
    """The ids of trials, or the digests of their places in the run, in twenty bytes each."""

    def __init__(self, ids: Iterable[str] = ()):
        self._recent, self._sorted = set[str](), list[Any]()
        for trial in ids:
            self.add(trial)

    def add(self, trial: str) -> None:
        """Add a trial that is not in the collection yet."""
        self._recent.add(trial)
        if len(self._recent) == RECENT:
            import numpy as np  # noqa: PLC0415  a run that is small needs none

            recent = np.fromiter(self._recent, "S20")
            self._recent.clear()
            self._sorted = [np.concatenate([*self._sorted, recent])]
            self._sorted[0].sort()

    def __len__(self) -> int:
        return len(self._recent) + sum(map(len, self._sorted))

    def __iter__(self) -> Iterator[str]:
        yield from self._recent
        for ids in self._sorted:
            yield from (trial.decode() for trial in ids)

    def __contains__(self, trial: object) -> bool:
        if trial in self._recent:
            return True
        wanted = str(trial).encode()
        for ids in self._sorted:
            place = ids.searchsorted(wanted)
            if place < len(ids) and ids[place] == wanted:
                return True
        return False
