"""What a number of pairs cannot decide, whatever they show."""

from __future__ import annotations

LEVEL = 0.05


def beyond_reach(least: float | None, family: int) -> bool:
    """Return whether a test cannot find anything: even the least p that its pairs can give is not below the level after Holm's
    correction over the family."""
    return least is not None and least * family >= LEVEL


def floor_verdict(number: int, what: str = "pairs") -> str:
    """Return the verdict on a number of pairs (or instances) with which nothing can be found."""
    return f"cannot be decided with {number} {what if number != 1 else what.removesuffix('s')} (floor)"


def open_verdict(number: int, least: float | None, family: int, what: str = "pairs", otherwise: str = "inconclusive") -> str:
    """Return the verdict of a test that found nothing: that so many pairs cannot decide, or `otherwise`."""
    return floor_verdict(number, what) if beyond_reach(least, family) else otherwise
