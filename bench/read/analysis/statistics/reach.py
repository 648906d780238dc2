"""Verdicts on tests with so few pairs that they cannot find a difference, whatever the pairs show."""

from __future__ import annotations

LEVEL = 0.05


def beyond_reach(least: float | None, family: int) -> bool:
    """Whether a test can find nothing: after Holm's correction over the family, even the least p that its pairs can give is
    not below the level."""
    return least is not None and least * family >= LEVEL


def floor_verdict(number: int, what: str = "pairs") -> str:
    """Return the verdict that nothing can be decided with this number of pairs, or of another unit (`what`)."""
    return f"cannot be decided with {number} {what if number != 1 else what.removesuffix('s')} (floor)"


def open_verdict(number: int, least: float | None, family: int, what: str = "pairs", otherwise: str = "inconclusive") -> str:
    """Return the verdict on a test that found nothing: that so few pairs cannot decide, or else `otherwise`."""
    return floor_verdict(number, what) if beyond_reach(least, family) else otherwise
