"""What a report is made from: a run, and values computed once from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from bench.read.analysis.arms import Arms, arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.published import Published, published_for

Value = TypeVar("Value")


class Results:
    """A run and the values that several parts of its report need. Each value is computed once."""

    def __init__(self, run: Run):
        self.run = run
        self._values: dict[Callable[[Results], Any], Any] = {}

    @cached_property
    def arms(self) -> Arms:
        """The arms of the run."""
        return arms_of(self.run)

    @cached_property
    def published(self) -> Published:
        """The paper's figures and claims; empty if the run is about something else."""
        return published_for(self.run)

    def once(self, make: Callable[[Results], Value]) -> Value:
        """Return what `make` returns for these results. `make` is called only once."""
        if make not in self._values:
            self._values[make] = make(self)
        value: Value = self._values[make]
        return value
