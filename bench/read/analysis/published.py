"""The published figures that tables and figures compare with ours. `bench.read.claims` reads them."""

from __future__ import annotations

from typing import Protocol


class PublishedMean(Protocol):
    """A published mean. `sd` is None if none was published."""

    @property
    def mean(self) -> float: ...

    @property
    def sd(self) -> float | None: ...


class PublishedCount(Protocol):
    """The number of published executions that failed, and the place where the number is printed."""

    @property
    def failures(self) -> int: ...

    @property
    def executions(self) -> int: ...

    @property
    def place(self) -> str: ...

    @property
    def note(self) -> str: ...


class PublishedSource(Protocol):
    """A publication. `asked` names the model that was asked, and how it was asked."""

    @property
    def source(self) -> str: ...

    @property
    def asked(self) -> str: ...

    @property
    def runs(self) -> int | None: ...


class PublishedFigures(Protocol):
    @property
    def paper(self) -> PublishedSource: ...

    @property
    def has_figures(self) -> bool:
        """Whether the run is about what was published."""

    def cell(self, scenario: str, row: str, architecture: str) -> PublishedMean:
        """Return the value in a published table, under whatever fault plan. Raises KeyError if there is none."""

    def value(self, scenario: str, plan: str, measure: str, architecture: str) -> PublishedMean | None:
        """Return a table's value for a column of a run's trials under a fault plan; None if there is none."""

    def natural(self, scenario: str) -> PublishedCount | None:
        """Return how many executions failed without a fault; None if that was not published."""
