"""Split the results of an experiment by model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from bench.read.analysis.frames import Run


class OfModel(Protocol):
    @property
    def model(self) -> str: ...


Result = TypeVar("Result", bound=OfModel)


def by_model(run: Run, results: Iterable[Result]) -> Iterator[tuple[str, list[Result]]]:
    """Yield each model that has results, in the run's order, with its results."""
    every = list(results)
    for model in run.names("model"):
        if of_model := [result for result in every if result.model == model]:
            yield model, of_model
