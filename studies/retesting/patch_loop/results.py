"""What a run's manifest keeps of the arms: the result of each case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import TypeAdapter

from bench.common.bounds import BoundedTable, Listed

Disruption = Literal["none", "flaky", "lost_result", "stale_cache", "half_patch"]
"""What goes wrong once in a case.

flaky         the result of one run of a test is reported the wrong way round
lost_result   the result of one run of a test does not arrive
stale_cache   the agent begins with the results of the previous release, in which all tests passed
half_patch    only the first half of a patch's changes arrives, and the agent is told that all did
"""
DISRUPTIONS: tuple[Disruption, ...] = get_args(Disruption)
FORMS = {"repairs:patch": "edits", "repairs:rewrite": "whole files"}
"""Scenario -> the form of its patches."""


@dataclass(frozen=True)
class LoopResult:
    """The result of a case in an arm.

    outcome      solved; wrong: handed in while a test fails; gave_up: patches used up
    tokens       read and written by the proposer
    executions   runs of a test
    seconds      simulated
    believed     looks at a test in which a kept pass was believed
    wrong        of these, looks in which the test would have failed
    over_run     runs of a test with the same result as its last run
    struck       whether the disruption arrived
    """

    outcome: Literal["solved", "wrong", "gave_up"]
    tokens: int
    executions: int
    seconds: float
    believed: int
    wrong: int
    over_run: int
    patches: int
    struck: bool


@dataclass(frozen=True)
class PatchedCase:
    """The result of an arm on the patches of one case.

    outcome      solved; wrong: handed in while a test fails; gave_up: patches used up
    patches      patches that it asked for, `fitting` of them applicable
    executions   runs of a test
    believed     looks at a test in which a kept pass was believed; in `wrong` of them the test would have failed
    """

    case: str
    outcome: Literal["solved", "wrong", "gave_up"]
    patches: int
    fitting: int
    tokens: int
    executions: int
    believed: int
    wrong: int


LoopResults = BoundedTable[str, BoundedTable[str, Listed[LoopResult]]]
LOOPS = TypeAdapter(LoopResults)
"""Disruption -> arm -> the result of each case, in the order of the cases."""
PATCHED = TypeAdapter(BoundedTable[str, BoundedTable[str, Listed[PatchedCase]]])
"""Form of the patches -> arm -> the result of each case."""
