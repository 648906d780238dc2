"""An experiment's findings parted by model: each model has figures of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from bench.analysis.frames import Run


class OfModel(Protocol):
    @property
    def model(self) -> str: ...


Result = TypeVar("Result", bound=OfModel)


def by_model(run: Run, results: Iterable[Result]) -> Iterator[tuple[str, list[Result]]]:
    """Each model of the run of which something was found, in the run's order, and that."""
    every = list(results)
    for model in run.names("model"):
        if of_model := [result for result in every if result.model == model]:
            yield model, of_model
