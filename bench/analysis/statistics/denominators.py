"""A rate under each way to count the trials that ended in an error."""

from __future__ import annotations

from dataclasses import dataclass

from bench.analysis.statistics.rates import Share, share_of


@dataclass(frozen=True)
class Denominators:
    """The rate of the solved trials. Counted as failures, errors are at their worst; `best` counts them as solved."""

    left_out: Share
    as_failures: Share
    best: Share

    @property
    def worst(self) -> Share:
        return self.as_failures


def denominators(solved: int, unsolved: int, errors: int) -> Denominators:
    """Of the counts of trials by how they ended. Raises ValueError for a negative one."""
    if min(solved, unsolved, errors) < 0:
        raise ValueError("a count is negative")
    n = solved + unsolved + errors
    return Denominators(share_of(solved, solved + unsolved), share_of(solved, n), share_of(solved + errors, n))


def ranking_depends(first: Denominators, second: Denominators) -> bool:
    """Does it depend on the errors which of two arms has the higher rate?

    They are compared in each way alike, and each one's worst case with the other's best. Where a rate does not exist, as
    every trial ended in an error, the ranking depends on nothing else.
    """
    ways = (
        (first.left_out, second.left_out),
        (first.as_failures, second.as_failures),
        (first.best, second.best),
        (first.worst, second.best),
        (first.best, second.worst),
    )
    return len({_order(one, other) for one, other in ways}) > 1


def _order(one: Share, other: Share) -> int | None:
    if one.rate is None or other.rate is None:
        return None
    # Cross-multiplied, so that equal rates are equal to the last bit.
    left, right = one.k * other.n, other.k * one.n
    return (left > right) - (left < right)
