"""The five parts of an agent, and the reasons why a part cannot be mended."""

from __future__ import annotations

from typing import Literal, get_args

MendedPart = Literal["proposer", "verifier", "commit", "signal", "pattern"]
PARTS: tuple[MendedPart, ...] = get_args(MendedPart)
BOUNDARY: tuple[MendedPart, ...] = ("verifier", "signal", "commit")
"""The parts that a boundary has."""

# The reasons why a part cannot be mended.
CODE_OUTSIDE = "the agent has it in code that is not worked through here"
LACKS_METHODS = "the agent's has methods that ours lacks"
NO_REMEDIED_FORM = "the architecture has no form with remedies"
FOREIGN_CODE = "its code is in a package of your own, and we have no other code for it"
NO_WORLD = "the task has no world in which it could be exchanged"
NO_STRUCK_OUTPUT = "no output that it accepted was struck by a fault"
IGNORES_REASONS = "a simulated model repairs the same with a reason and without"
