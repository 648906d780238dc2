"""What a number of pairs cannot decide, whatever they show."""

from __future__ import annotations

LEVEL = 0.05


def beyond_reach(least: float | None, family: int) -> bool:
    """Return whether no values of so many pairs are found at the level: even the least p that they can give is not below it
    after Holm's correction over the family."""
    return least is not None and least * family >= LEVEL


def floor_said(number: int, what: str = "pairs") -> str:
    """Return the verdict on so many pairs (or instances) that cannot decide."""
    return f"cannot be decided with {number} {what if number != 1 else what.removesuffix('s')} (floor)"


def open_verdict(number: int, least: float | None, family: int, what: str = "pairs", otherwise: str = "inconclusive") -> str:
    """Return the verdict where nothing was found: that so many pairs cannot decide, or `otherwise`."""
    return floor_said(number, what) if beyond_reach(least, family) else otherwise
