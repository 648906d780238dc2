"""The price of a solved task at a failure rate, calculated: the closed forms that a simulation must agree with.

Let a model be right whenever it is not struck. Let a fault that every verifier sees strike each subtask's part of a reply with
chance p, independently. Let n bound the attempts at a subtask. Let t be the price of its first call and u of each further call
(tokens or seconds; u > t if a reason is appended to the prompt).

monolithic   One call for all k subtasks is accepted with chance a = (1 - p)^k. The calls are geometric, cut off at n: call i is
             made with chance (1 - a)^(i - 1), so their expected number is (1 - (1 - a)^n) / a, and the task is solved with
             chance 1 - (1 - a)^n. At one price t a call, the price of a solved task is t / a: the bound n cancels out.

runtime_structured   Each subtask alone is geometric, cut off at n: attempt i is made with chance p^(i - 1), and all fail with
             chance p^n. Subtask j is reached with chance (1 - p^n)^(j - 1) and then costs t + u (p + ... + p^(n - 1)); the
             task is solved with chance (1 - p^n)^k.

static       Within a stage (the subtasks up to a checkpoint) a pass from subtask i on costs all from i to the checkpoint. The
             first struck subtask is f with chance p (1 - p)^(f - i), and the next pass begins there; none is struck with
             chance (1 - p)^(m - i + 1). A subtask asked in every pass runs out of attempts first, so the state of the
             recursion is (where the pass begins, the attempts used by each). Its tree ends after n passes, and the sum over
             it is exact.

What they leave out: a struck output that is handed on is a little shorter than a whole one, and so is the prompt that shows it.
A real model also fails by itself, and is not always right when it passes. A measured price above the closed form shows this.

Derived here, from the definitions of the architectures; no other source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True)
class Pipeline:
    """first, again    the price of the first and of each further call, by stage and subtask
    attempts        the bound n, at least 1"""

    first: tuple[tuple[float, ...], ...]
    again: tuple[tuple[float, ...], ...]
    attempts: int


@dataclass(frozen=True)
class Expectation:
    """What a trial is expected to spend, and the chance that it is solved."""

    spent: float
    solved: float

    @property
    def per_solved(self) -> float:
        return self.spent / self.solved if self.solved else math.inf


def monolithic(call: float, subtasks: int, rate: float, attempts: int) -> Expectation:
    """Return the expectation. `call`: the price of the one call that does all `subtasks`."""
    failed = 1 - (1 - rate) ** subtasks
    return Expectation(call * sum(failed**made for made in range(attempts)), 1 - failed**attempts)


def runtime_structured(pipeline: Pipeline, rate: float) -> Expectation:
    n = pipeline.attempts
    spent, reached = 0.0, 1.0
    for first, again in zip(chain(*pipeline.first), chain(*pipeline.again), strict=True):
        spent += reached * (first + again * sum(rate**made for made in range(1, n)))
        reached *= 1 - rate**n
    return Expectation(spent, reached)


def static(pipeline: Pipeline, rate: float) -> Expectation:
    spent, reached = 0.0, 1.0
    for first, again in zip(pipeline.first, pipeline.again, strict=True):
        stage = _passes(first, again, rate, pipeline.attempts, 0, (0,) * len(first))
        spent += reached * stage.spent
        reached *= stage.solved
    return Expectation(spent, reached)


def _passes(
    first: Sequence[float], again: Sequence[float], rate: float, most: int, begin: int, used: tuple[int, ...]
) -> Expectation:
    """Return the expectation of a pass from subtask `begin` to the checkpoint, with all further passes that can follow."""
    spent = 0.0
    for place in range(begin, len(first)):
        if used[place] == most:
            return Expectation(spent, 0.0)
        spent += again[place] if used[place] else first[place]
    made = tuple(count + (place >= begin) for place, count in enumerate(used))
    passed = (1 - rate) ** (len(first) - begin)
    for struck in range(begin, len(first)) if rate else ():
        chance = rate * (1 - rate) ** (struck - begin)
        rest = _passes(first, again, rate, most, struck, made)
        spent, passed = spent + chance * rest.spent, passed + chance * rest.solved
    return Expectation(spent, passed)


# When a round of static is dearer than a round of monolithic

NEAR = 0.05
"""A ratio of rounds this near to 1 decides nothing: it ignores that a struck output is shorter, and that a reason is told."""


def has_side(ratio: float, side: int) -> bool:
    """Return whether a ratio of rounds agrees with the measured side: 1 if the first round is dearer, -1 if the second is."""
    return abs(ratio - 1) >= NEAR and (ratio > 1) is (side > 0)


def pass_ratio(depth: int, shared: float, handed_on: float = 0.0) -> float:
    """Return the price of a pass of static divided by the price of a pass of monolithic, in a pipeline of `depth` equal calls.

    Let a call's own tokens (its instructions, its form, its reply) be 1. `shared` is what every call is told again (the role,
    the documents) and a single call for all is told once. `handed_on` is what a call reads of earlier outputs, which a single
    call for all writes and does not read.
    """
    return depth * (shared + handed_on + 1) / (shared + depth)


def round_ratio(pass_ratio: float, run_again: float) -> float:
    """Return the price of a round of static divided by the price of a round of monolithic.

    `run_again` is the share of static's pass from the struck subtask to where the failure is noticed. The ratio is exact for
    calls of any sizes, because a round of monolithic is its pass. So static is dearer if `run_again` is larger than
    monolithic's pass divided by static's.
    """
    return pass_ratio * run_again


def shared_at_parity(depth: int, run_again: float, handed_on: float = 0.0) -> float | None:
    """Return the amount of shared context from which a round of static is dearer than a round of monolithic: 0 if it always is,
    None if it never is."""
    if depth * run_again <= 1:
        return None
    return max(0.0, depth * (1 - run_again * (1 + handed_on)) / (depth * run_again - 1))
