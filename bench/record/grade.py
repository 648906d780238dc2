"""The grade of an answer, as a pack's grader returns it and a record holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from bench.common.bounds import Lookup

MAX_PARTS = 1_000
"""The most partial scores of a grade."""


@dataclass(frozen=True)
class Grade:
    """The grader's judgment of an answer. A correct answer may score less than 1.

    correct   whether it solves the task
    score     in [0, 1]
    parts     its partial scores, each in [0, 1], at most MAX_PARTS
    note      one line that says why

    Raises:
        ValueError: A score is not in [0, 1], or there are too many parts.
    """

    correct: bool
    score: float
    parts: Annotated[Lookup[str, float], Field(max_length=MAX_PARTS)]
    note: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.correct, bool):
            raise ValueError(f"a grade's `correct` is {self.correct!r}; it must be True or False")
        if len(self.parts) > MAX_PARTS:
            raise ValueError(f"a grade has {len(self.parts):,} parts; it may have {MAX_PARTS:,}")
        for name, score in {"score": self.score, **self.parts}.items():
            if not isinstance(score, int | float) or not 0 <= score <= 1:
                raise ValueError(f"a grade's `{name}` is {score!r}; it must be a number from 0 to 1")
