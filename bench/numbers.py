"""Numbers from outside, within bounds that keep sums safe: a file can name any number."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MOST = 10**12
"""The most tokens in a call, for instance: the sum of nine million such calls fits into 64 bits."""

Count = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
"""Dollars per million tokens. The most expensive known model costs 600."""
Seconds = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]
