"""Worlds whose truth is known, from which simulated experiments are drawn: here of what a trial spends in all.

Tokens of a trial are those of its attempts, each lognormal about the same mean; an attempt fails with a certain chance and is
then made again, three times at most. How widely the attempts spread, and how often they fail, is what a recorded run showed
once: the worlds stay as they are when another run is recorded, so that no new recording asks for a new calibration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.read.analysis.statistics import Measure

TOKENS = 5000.0
"""Of one attempt in the mean: the scale changes nothing but how fine whole tokens are."""
ATTEMPTS = 3
SHARED = 0.5
"""The part of a trial's spread, as variance of the logarithm, that it has in common with its twin of the same seed."""

Values = np.ndarray
Draw = Callable[[np.random.Generator, int, int], Values]
DrawPair = Callable[[np.random.Generator, int, int], tuple[Values, Values]]


@dataclass(frozen=True)
class World:
    """A simulated world: `draw(rng, experiments, n)` gives an array of that shape. `recorded`: whether it is within what the
    recorded run showed."""

    name: str
    recorded: bool
    mean: float
    draw: Draw
    measure: Measure = "spent"


@dataclass(frozen=True)
class PairedWorld:
    """Two arms of the same seeds: `draw` gives one array each; `means` are their true means."""

    name: str
    recorded: bool
    means: tuple[float, float]
    draw: DrawPair
    measure: Measure = "spent"


@dataclass(frozen=True)
class Recorded:
    """What a run showed without injected faults: the spread (sd of the logarithm) of tokens per call within an arm, pooled and
    in the widest arm, and how often a whole monolithic reply was rejected and asked for again, of those that could be."""

    spread: float
    widest: float
    rejected: int
    attempts: int

    @property
    def failing(self) -> float:
        return self.rejected / self.attempts


RECORDED = Recorded(spread=0.13788745688911544, widest=0.23592913343402858, rejected=18, attempts=22)
"""Read off the trials without faults in the first six repetitions of `paper-qwen2.5-coder-1.5b-instruct`, recorded on
2026-11-22 with version 0.1.0: two packs, three architectures. To the last digit: every simulated number follows from it."""


def worlds(recorded: Recorded) -> list[World]:
    """Return worlds of the tokens of one arm."""
    return [
        *(_tokens(spread, 0.0, recorded=True) for spread in (recorded.spread, recorded.widest)),
        _tokens(recorded.spread, recorded.failing, recorded=True),
        _tokens(recorded.spread, 0.5, recorded=True),
        *(_tokens(recorded.spread, failing, recorded=False) for failing in (0.2, 0.05)),
        *(_tokens(spread, 0.0, recorded=False) for spread in (0.6, 1.0)),
    ]


def paired_worlds(recorded: Recorded) -> list[PairedWorld]:
    """Return worlds of two arms that differ: what the left spends less in the mean, the right spends more."""
    wide, narrow = recorded.widest, recorded.spread
    return [
        _pair("lognormal, a fifth less", (wide, 0.0, 0.8), (wide, 0.0, 1.0), recorded=True),
        _pair("reruns against none", (narrow, 0.5, 1.0), (narrow, 0.0, 1.0), recorded=True),
        _pair("reruns 0.5 against 0.2", (narrow, 0.5, 1.0), (narrow, 0.2, 1.0), recorded=True),
        _pair("rare reruns (0.05) against none", (narrow, 0.05, 1.0), (narrow, 0.0, 1.0), recorded=False),
        _pair("lognormal 1.0, a fifth less", (1.0, 0.0, 0.8), (1.0, 0.0, 1.0), recorded=False),
    ]


def null_worlds(recorded: Recorded) -> list[PairedWorld]:
    """Return worlds of two arms whose means are equal: A/A, an architecture against itself, and two that differ in all but the
    mean."""
    wide, narrow = recorded.widest, recorded.spread
    alike = [(wide, 0.0, 1.0), (narrow, 0.5, 1.0), (narrow, 0.05, 1.0), (1.0, 0.0, 1.0)]
    names = ["A/A, lognormal", "A/A, reruns 0.5", "A/A, rare reruns (0.05)", "A/A, lognormal 1.0"]
    same = [_pair(name, arm, arm, recorded=True) for name, arm in zip(names, alike, strict=True)]
    scale = _attempts(0.5)
    rare = _attempts(0.05)
    return [
        *same,
        _pair("equal means, reruns 0.5 against none", (narrow, 0.5, 1 / scale), (narrow, 0.0, 1.0), recorded=True),
        _pair("equal means, rare reruns (0.05) against none", (narrow, 0.05, 1 / rare), (narrow, 0.0, 1.0), recorded=False),
    ]


def _attempts(failing: float) -> float:
    """Return the mean number of attempts."""
    return sum(failing**made for made in range(ATTEMPTS))


def _tokens(spread: float, failing: float, *, recorded: bool) -> World:
    def draw(rng: np.random.Generator, experiments: int, n: int) -> Values:
        return np.asarray(np.rint(_spent(rng, np.zeros((experiments, n)), spread, failing)))

    name = f"lognormal {spread:.2f}" + (f", reruns {failing:.2f}" if failing else "")
    return World(name, recorded, TOKENS * _attempts(failing), draw)


Arm = tuple[float, float, float]
"""Spread, chance to fail, tokens of an attempt by TOKENS."""


def _pair(name: str, left: Arm, right: Arm, *, recorded: bool) -> PairedWorld:
    def draw(rng: np.random.Generator, experiments: int, n: int) -> tuple[Values, Values]:
        seed = rng.normal(size=(experiments, n)) * math.sqrt(SHARED)
        return _arm(rng, seed, left), _arm(rng, seed, right)

    means = (TOKENS * left[2] * _attempts(left[1]), TOKENS * right[2] * _attempts(right[1]))
    return PairedWorld(name, recorded, means, draw)


def _arm(rng: np.random.Generator, seed: Values, arm: Arm) -> Values:
    spread, failing, size = arm
    return np.asarray(np.rint(size * _spent(rng, seed, spread, failing, shared=SHARED)))


def _spent(rng: np.random.Generator, seed: Values, spread: float, failing: float, shared: float = 0.0) -> Values:
    """Tokens of a trial, attempt by attempt. `seed` is what it has in common with its twin, of variance `shared`."""
    spent, goes_on = np.zeros(seed.shape), np.ones(seed.shape, dtype=bool)
    for _ in range(ATTEMPTS):
        by_attempt = rng.normal(size=seed.shape) * math.sqrt(1 - shared)
        spent += goes_on * TOKENS * np.exp(spread * (seed + by_attempt) - spread**2 / 2)
        goes_on &= rng.random(seed.shape) < failing
    return spent
