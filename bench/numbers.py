"""Numbers that come from outside, within the bounds in which sums of them can be calculated with: a file can name any."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MOST = 10**12
"""Of tokens in one call, say: nine million such calls fit into 64 bits."""

Count = Annotated[int, Field(ge=0, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
"""Dollars per million tokens; the dearest model known takes 600."""
Seconds = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]
