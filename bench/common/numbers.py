"""Numbers from outside, within bounds in which sums are safe. A file can contain any number."""

from __future__ import annotations

import math
from typing import Annotated, NoReturn

from pydantic import Field

MAX_COUNT = 10**12
"""The largest count in a file, such as the tokens of a call. The sum of nine million of these counts fits into 64 bits."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
"""Dollars per million tokens. The most expensive known model costs 600."""
Seconds = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]


def no_number(text: str) -> NoReturn:
    """Reject a number that JSON does not have, for example NaN. This is the `parse_constant` of `json.loads`. Raises
    ValueError."""
    raise ValueError(f"{text[:20]} is not a number in JSON; write a number, or null")


def finite(text: str) -> float:
    """Return a number with a fraction. This is the `parse_float` of `json.loads`. Raises ValueError if no float can
    represent the number."""
    number = float(text)
    return number if math.isfinite(number) else no_number(text)
