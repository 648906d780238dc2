"""Worlds of what follows on a failure: retry tokens, the first round after a fault, the price of a fault, and scores.

A round is the tokens of one attempt at recovery: close about their mean, as one reply is like another. How many rounds there
are is what varies: often none, never more than the attempts allow. In the worlds of one task only chance tells trials apart, as
it does the repetitions of one instance; in those of unlike tasks sizes differ as well, and some never fail, as instances do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from calibration.worlds import TOKENS, PairedWorld, Values, World

from bench.read.analysis.statistics import Measure

ROUND = 1650.0
"""Tokens of a round, in the mean."""
CLOSE = 0.03
"""The spread (sd of the logarithm) of one reply about another of the same request."""
UNLIKE = 0.5
"""The spread of one task's size about another's."""
SUBTASKS = (450.0, 900.0, 350.0, 1300.0)
"""Tokens of a round of each of four subtasks."""
FIRST_ROUNDS = (328, 335, 336, 337, 350, 356, 356, 356, 398, 417)
"""Those of `runtime_structured` on `multi_file_debugging` in `paper-qwen2.5-coder-1.5b-instruct`: few, some of them alike."""
SELDOM_FAIL = (0.05, 0.1, 0.2, 0.3)
"""The part of a user's trials that need a further attempt."""
TRIES, ALIKE = 4, 0.3
"""Trials of one task, and the correlation of the failures of two of them."""
SCORES = (0.0, 0.35, 0.45, 0.6)
"""As the graders gave them there: nothing, or a part of the answer."""

Spends = Callable[[np.random.Generator, Values], Values]
"""Tokens of each trial, by the logarithm of its task's size."""


@dataclass(frozen=True)
class Arm:
    mean: float
    spends: Spends


def in_one_call(chances: Sequence[float], tokens: float = ROUND, failing: float = 1.0) -> Arm:
    """The whole again each time: the chance of the first round, of a second one after it, and so on. `failing`: the part of the
    tasks that fail at all."""

    def spends(rng: np.random.Generator, size: Values) -> Values:
        spent, goes_on = np.zeros(size.shape), rng.random(size.shape) < failing
        for chance in chances:
            goes_on &= rng.random(size.shape) < chance
            spent += goes_on * _round(rng, size, tokens)
        return np.asarray(np.rint(spent))

    return Arm(failing * tokens * float(np.cumprod(chances).sum()), spends)


def by_subtask(chance: float) -> Arm:
    """Return an arm that asks for each subtask again alone, twice at most. After a third failure the trial gives up."""

    def spends(rng: np.random.Generator, size: Values) -> Values:
        spent, lives = np.zeros(size.shape), np.ones(size.shape, dtype=bool)
        for tokens in SUBTASKS:
            fails = lives
            for _ in range(2):
                fails = fails & (rng.random(size.shape) < chance)
                spent += fails * _round(rng, size, tokens)
            lives = lives & ~(fails & (rng.random(size.shape) < chance))
        return np.asarray(np.rint(spent))

    reached = (1 - chance**3) ** np.arange(len(SUBTASKS))
    return Arm(float((np.array(SUBTASKS) * reached).sum() * (chance + chance**2)), spends)


def among(values: Sequence[float], chances: Sequence[float] | None = None, again: float = 0.0) -> Arm:
    """Return an arm that spends one of few values. With the chance `again` it spends another one on top, as by a second
    call."""
    known = np.array(values, dtype=float)

    def spends(rng: np.random.Generator, size: Values) -> Values:
        first, second = (rng.choice(known, size.shape, p=chances) for _ in range(2))
        return np.asarray(np.exp(size) * (first + (rng.random(size.shape) < again) * second))

    return Arm((1 + again) * float(np.average(known, weights=chances)), spends)


def _round(rng: np.random.Generator, size: Values, tokens: float) -> Values:
    return np.asarray(tokens * np.exp(size + CLOSE * rng.normal(size=size.shape) - CLOSE**2 / 2))


@dataclass(frozen=True)
class Course:
    """An arm in a world: `unlike` is the spread of its tasks' sizes."""

    measure: Measure
    name: str
    arm: Arm
    recorded: bool = True
    unlike: float = 0.0


OFTEN, SELDOM, RARELY = in_one_call((0.7, 0.4)), in_one_call((0.2, 0.5)), in_one_call((0.05, 0.5))
ALONE = by_subtask(0.35)
REPLIES = among(FIRST_ROUNDS)
ONE_OR_TWO = among(FIRST_ROUNDS, again=0.6)
THREE_OR_FOUR = among((1800, 1850, 1900, 2400, 2500, 2550, 2600), (0.2, 0.1, 0.1, 0.1, 0.2, 0.1, 0.2))
A_THIRD, A_SIXTH, A_TWENTIETH = (among(SCORES, (1 - 3 * part, part, part, part)) for part in (0.1, 0.055, 0.0167))
HALF_FAIL = in_one_call((0.4, 0.5), failing=0.5)
COURSES = (
    Course("retry", "0.7 fail, 0.4 again", OFTEN),
    Course("retry", "0.2 fail, 0.5 again", SELDOM),
    Course("retry", "four subtasks, 0.35 fail", ALONE),
    Course("retry", "four subtasks, 0.1 fail", by_subtask(0.1), recorded=False),
    Course("retry", "0.05 fail, 0.5 again", RARELY, recorded=False),
    Course("retry", "nearly all give up", in_one_call((0.97, 0.9)), recorded=False),
    Course("retry", "unlike tasks, half of which fail: 0.4", HALF_FAIL, False, UNLIKE),
    Course("first_round", "ten replies", REPLIES),
    Course("first_round", "one call in 0.4, else two", ONE_OR_TWO),
    Course("first_round", "three calls in 0.4, else four", THREE_OR_FOUR),
    Course("first_round", "a second call in 0.05", among(FIRST_ROUNDS, again=0.05), recorded=False),
    Course("first_round", "unlike tasks", in_one_call((1.0,)), False, UNLIKE),
    Course("price", "a second round in 0.2", in_one_call((1.0, 0.2))),
    Course("price", "a second round in 0.5", in_one_call((1.0, 0.5))),
    Course("price", "a second round in 0.05", in_one_call((1.0, 0.05)), recorded=False),
    Course("price", "unlike tasks, a second round in 0.3", in_one_call((1.0, 0.3)), False, UNLIKE),
    Course("score", "one in three has a part", A_THIRD),
    Course("score", "one in six has a part", A_SIXTH),
    Course("score", "one in twenty has a part", A_TWENTIETH, recorded=False),
    Course("score", "nearly all solved", among((0.0, 0.5, 1.0), (0.05, 0.1, 0.85)), recorded=False),
)


def recovery_worlds() -> list[World]:
    return [World(course.name, course.recorded, course.arm.mean, _draw(course), course.measure) for course in COURSES]


def _draw(course: Course) -> Callable[[np.random.Generator, int, int], Values]:
    def draw(rng: np.random.Generator, experiments: int, n: int) -> Values:
        return course.arm.spends(rng, _sizes(rng, (experiments, n), course.unlike))

    return draw


def _sizes(rng: np.random.Generator, shape: tuple[int, int], unlike: float) -> Values:
    return np.asarray(rng.normal(size=shape) * unlike - unlike**2 / 2)


def recovery_pairs() -> list[PairedWorld]:
    """Return pairs of two arms on the same tasks, whose sizes they have in common."""
    one_like_another = in_one_call((1.0,))
    return [
        _pair("retry", "0.2 fail against 0.7", SELDOM, OFTEN),
        _pair("retry", "four subtasks, 0.35 fail, against all given up", ALONE, in_one_call((1.0, 1.0), 2600.0)),
        _pair("retry", "0.05 fail against 0.2", RARELY, SELDOM, recorded=False),
        _pair("retry", "unlike tasks, half of which fail, against 0.2", HALF_FAIL, SELDOM, recorded=False, unlike=UNLIKE),
        _pair("first_round", "ten replies against one like another", REPLIES, one_like_another),
        _pair("first_round", "one call or two against ten replies", ONE_OR_TWO, REPLIES),
        _pair("first_round", "three calls or four against ten replies", THREE_OR_FOUR, REPLIES),
        _pair("first_round", "a second call in 0.05 of one", among(FIRST_ROUNDS, again=0.05), REPLIES, recorded=False),
        _pair("first_round", "unlike tasks", in_one_call((1.0,), 360.0), one_like_another, recorded=False, unlike=UNLIKE),
        _pair("price", "a second round in 0.2 against 0.5", in_one_call((1.0, 0.2), 360.0), in_one_call((1.0, 0.5))),
        _pair("price", "a second round in 0.2 of both", in_one_call((1.0, 0.2), 360.0), in_one_call((1.0, 0.2), 1400.0)),
        _pair("price", "a second round in 0.05 of one", in_one_call((1.0, 0.05)), one_like_another, recorded=False),
        _pair("price", "unlike tasks", in_one_call((1.0, 0.3), 360.0), in_one_call((1.0, 0.3)), recorded=False, unlike=UNLIKE),
        _pair("score", "a part in one of three against one of six", A_THIRD, A_SIXTH),
        _pair("score", "a part in one of twenty against one of six", A_TWENTIETH, A_SIXTH, recorded=False),
    ]


def user_worlds() -> list[World]:
    """Tokens of a trial whose model seldom fails, over tasks of unlike size: the models that users have."""
    return [
        World(name, False, arm.mean, _draw(Course("spent", name, arm, False, UNLIKE)))
        for chance in SELDOM_FAIL
        for name, arm in _of_a_user(chance)
    ]


def user_pairs() -> list[PairedWorld]:
    """Return pairs of an arm that seldom fails and an arm that never does, on the same tasks."""
    return [
        _pair("spent", f"{name}, against none", arm, in_one_call((1.0,), TOKENS), recorded=False, unlike=UNLIKE)
        for chance in SELDOM_FAIL
        for name, arm in _of_a_user(chance)
    ]


def _of_a_user(chance: float) -> list[tuple[str, Arm]]:
    once = in_one_call((1.0, chance, chance), TOKENS)
    return [
        (f"unlike tasks, {chance:g} fail", once),
        (f"unlike tasks, {TRIES} trials each, {chance:g} fail alike", by_task(chance)),
    ]


def by_task(chance: float) -> Arm:
    """Return an arm that spends the mean of several trials of a task. Each task fails with a chance of its own, twice at
    most."""
    sharp = 1 / ALIKE - 1

    def spends(rng: np.random.Generator, size: Values) -> Values:
        own = rng.beta(chance * sharp, (1 - chance) * sharp, size.shape)
        spent = np.zeros(size.shape)
        for _ in range(TRIES):
            goes_on = np.ones(size.shape, dtype=bool)
            for _ in range(3):
                spent += goes_on * _round(rng, size, TOKENS)
                goes_on &= rng.random(size.shape) < own
        return np.asarray(np.rint(spent) / TRIES)

    return Arm(TOKENS * (1 + chance + chance**2 + ALIKE * chance * (1 - chance)), spends)


def recovery_nulls() -> list[PairedWorld]:
    """Return pairs of two arms whose mean retry tokens are equal."""
    as_much = in_one_call((0.7, 0.4), ROUND * SELDOM.mean / OFTEN.mean)
    return [
        _pair("retry", "A/A, retry tokens, 0.2 fail", SELDOM, SELDOM),
        _pair("retry", "A/A, retry tokens, four subtasks", ALONE, ALONE),
        _pair("retry", "equal mean retry tokens, 0.2 fail against 0.7", SELDOM, as_much),
    ]


def solved_worlds() -> list[PairedWorld]:
    """Tokens of trials, and which of them solved their task: what is spent by each solved one."""
    spends = in_one_call((1.0, 0.5), 5000.0)
    return [
        _pair("spent", f"solved {rate:.0%}", spends, among((0.0, 1.0), (1 - rate, rate)), recorded=rate < 0.9)
        for rate in (0.3, 0.6, 0.95)
    ]


def _pair(measure: Measure, name: str, left: Arm, right: Arm, *, recorded: bool = True, unlike: float = 0.0) -> PairedWorld:
    def draw(rng: np.random.Generator, experiments: int, n: int) -> tuple[Values, Values]:
        sizes = _sizes(rng, (experiments, n), unlike)
        return left.spends(rng, sizes), right.spends(rng, sizes)

    return PairedWorld(name, recorded, (left.mean, right.mean), draw, measure)
