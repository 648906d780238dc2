"""The five parts of an agent, and the reasons why a part cannot be mended."""

from __future__ import annotations

from typing import Literal, get_args

MendedPart = Literal["proposer", "verifier", "commit", "signal", "pattern"]
PARTS: tuple[MendedPart, ...] = get_args(MendedPart)
BOUNDARY: tuple[MendedPart, ...] = ("verifier", "signal", "commit")
"""The parts that a boundary has."""
OUTSIDE = "the agent has it in code that is not worked through here"
OTHER = "the agent's has methods that ours lacks"
NO_PATTERN = "the architecture has no form with remedies"
ELSEWHERE = "its code is in a package of your own, and we have no other code for it"
NO_WORLD = "the task has no world in which it could be exchanged"
UNSTRUCK = "no output that it accepted was struck by a fault"
DEAF = "a simulated model repairs the same with a reason and without"
