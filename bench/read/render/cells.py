"""The cells of a table. A cell keeps its numbers apart from its text. CSV gets a column for each number, while Markdown and
the page show one text."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

from bench.read.analysis.per_solved import PerSolved
from bench.read.analysis.statistics import Limited, Mean, RateDifference, Ratio, Share, is_narrow

NOTHING, UNKNOWN, NONE_SOLVED = "n/a", "unknown", "none solved"
TOO_FEW, TOO_WIDE = "(too few to say)", 20
"""`TOO_FEW` replaces the interval of an amount if the interval ends above TOO_WIDE times the amount."""
NARROW = "†"
NARROW_NOTE = f"{NARROW}: too narrow: it misses in 10% of cases or more"


class NumberCell(ABC):
    """A cell that is made of numbers."""

    @abstractmethod
    def text(self) -> str:
        """Return the cell as people read it.

        Returns:
            One line.
        """

    @abstractmethod
    def numbers(self) -> dict[str, object]:
        """Return the cell's numbers, for programs.

        Returns:
            The suffix of the column's title ("" for the value itself) -> a number; None if there is none.
        """


Cell = str | int | NumberCell
"""A text, a whole number, or one of the types below."""


@dataclass(frozen=True)
class Number(NumberCell):
    """A number with `digits` digits after the point."""

    value: float | None
    digits: int = 0
    percent: bool = False

    def text(self) -> str:
        return _digits_of(self.value, self.digits, self.percent)

    def numbers(self) -> dict[str, object]:
        return {"": self.value}


@dataclass(frozen=True)
class Estimate(NumberCell):
    """A mean measured in this run. With `with_n` the cell shows its N if this differs from the column's N."""

    mean: Mean
    digits: int = 0
    with_n: bool = False

    def text(self) -> str:
        mean = self.mean
        if mean.mean is None:
            return NOTHING
        value, sd = _digits_of(mean.mean, self.digits), _digits_of(mean.sd, self.digits)
        interval = _interval(mean.mean, mean.low, mean.high, self.digits, limited=mean) or NOTHING
        shown = f"{value} ± {sd} {interval}" if mean.sd is not None else f"{value} (sd, interval {NOTHING})"
        return f"{shown}, N={mean.n}" if self.with_n else shown

    def numbers(self) -> dict[str, object]:
        mean = self.mean
        return {"": mean.mean, " sd": mean.sd, " low": mean.low, " high": mean.high, " n": mean.n}


@dataclass(frozen=True)
class BoundedNumber(NumberCell):
    """A number with its 95% interval, in a row that says elsewhere what was measured. `limited` says what kind of number the
    interval's limits are for."""

    value: float | None
    low: float | None
    high: float | None
    digits: int = 0
    percent: bool = False
    limited: Limited | None = None

    @classmethod
    def of(cls, measured: Limited, digits: int = 0, percent: bool = False) -> BoundedNumber:
        """Return the cell of a measured number.

        Args:
            measured: The number with its interval.
            digits: The digits after the point.
            percent: It is shown in percent.

        Returns:
            The cell.
        """
        return cls(value_of(measured), measured.low, measured.high, digits, percent, measured)

    def text(self) -> str:
        if self.value is None:
            return NOTHING
        interval = (
            _interval(self.value, self.low, self.high, self.digits, self.percent, self.limited) or f"(interval {NOTHING})"
        )
        return f"{_digits_of(self.value, self.digits, self.percent)} {interval}"

    def numbers(self) -> dict[str, object]:
        return {"": self.value, " low": self.low, " high": self.high}


@dataclass(frozen=True)
class AdjustedP(NumberCell):
    """A p-value after a correction.

    floor  the least p-value before correction that this number of pairs can give, if `p` is at it: then `p` shows how many
           pairs there were, not how far apart the arms are
    errs   how often the test at 5% found a difference where there was none, in the worst of the simulated worlds with this many
           pairs; None if no more often than it should
    """

    p: float | None
    floor: float | None = None
    errs: float | None = None

    def text(self) -> str:
        if self.p is None:
            return "–"
        text = f"{_digits_of(self.p, 3)}{'' if self.floor is None else ' (floor)'}"
        return text if self.errs is None else f"{text}, errs in {_digits_of(self.errs, 1, percent=True)}"

    def numbers(self) -> dict[str, object]:
        return {"": self.p, " floor": self.floor, " errs": self.errs}


@dataclass(frozen=True)
class Rate(NumberCell):
    """A rate k / n with its interval. Percentages have one digit after the point, so that 2/100 and 3/1000 look different."""

    share: Share

    def text(self) -> str:
        share = self.share
        if share.rate is None:
            return f"{NOTHING} (0/0)"
        interval = _interval(share.rate, share.low, share.high, 1, percent=True, limited=share)
        return f"{share.k}/{share.n} = {_digits_of(share.rate, 1, percent=True)} {interval}"

    def numbers(self) -> dict[str, object]:
        share = self.share
        return {"": share.rate, " low": share.low, " high": share.high, " k": share.k, " n": share.n}


@dataclass(frozen=True)
class RateGap(NumberCell):
    """A paired difference of two rates, with the number of pairs gained and lost."""

    gap: RateDifference

    def text(self) -> str:
        gap = self.gap
        if gap.difference is None:
            return NOTHING
        interval = _interval(gap.difference, gap.low, gap.high, 1, percent=True, limited=gap)
        return f"{_digits_of(gap.difference, 1, percent=True)} {interval}, {gap.gained} gained, {gap.lost} lost"

    def numbers(self) -> dict[str, object]:
        gap = self.gap
        return {"": gap.difference, " low": gap.low, " high": gap.high, " gained": gap.gained, " lost": gap.lost}


@dataclass(frozen=True)
class Spent(NumberCell):
    """The amount spent per solved trial, with both numbers. An unknown number is shown as a word, never as 0."""

    per_solved: PerSolved
    digits: int = 0

    def text(self) -> str:
        per_solved = self.per_solved
        if not per_solved.trials:
            return NOTHING
        if per_solved.spent is None:
            return UNKNOWN
        spent = _digits_of(per_solved.spent, self.digits)
        if per_solved.value is None:
            return f"{NONE_SOLVED} ({spent} in {per_solved.trials} trials)"
        low, high = per_solved.low, per_solved.high
        interval = _interval(per_solved.value, low, high, self.digits, limited=per_solved.ratio) or f"(interval {NOTHING})"
        return f"{spent}/{per_solved.solved} = {_digits_of(per_solved.value, self.digits)} {interval}"

    def numbers(self) -> dict[str, object]:
        per_solved = self.per_solved
        value = UNKNOWN if per_solved.spent is None else NONE_SOLVED if per_solved.value is None else per_solved.value
        return {"": value, " low": per_solved.low, " high": per_solved.high, " spent": per_solved.spent}


@dataclass(frozen=True)
class PublishedNumber(NumberCell):
    """A number from a publication: a mean, and an sd if one was given."""

    mean: float | None
    sd: float | None = None
    digits: int = 0
    percent: bool = False

    def text(self) -> str:
        if self.mean is None:
            return "–"
        value = _digits_of(self.mean, self.digits, self.percent)
        return value if self.sd is None else f"{value} ± {_digits_of(self.sd, self.digits, self.percent)}"

    def numbers(self) -> dict[str, object]:
        return {"": self.mean, " sd": self.sd}


@dataclass(frozen=True)
class Linked(NumberCell):
    """A text that links to the file `to` on a page; no link if `to` is ""."""

    shown: str
    to: str

    def text(self) -> str:
        return self.shown

    def numbers(self) -> dict[str, object]:
        return {"": self.shown}


def value_of(measured: Limited) -> float | None:
    """Return the measured value without its interval.

    Args:
        measured: The number with its interval.

    Returns:
        The value; None if there is none.
    """
    match measured:
        case Mean():
            return measured.mean
        case Ratio():
            return measured.ratio
        case Share():
            return measured.rate
        case RateDifference():
            return measured.difference


def text_of(cell: Cell) -> str:
    """Return a cell as people read it.

    Args:
        cell: The cell.

    Returns:
        One line.
    """
    return str(cell) if isinstance(cell, str | int) else cell.text()


def is_too_wide(value: float, low: float, high: float) -> bool:
    """Return whether the interval of an amount is so wide that it only says that there were too few trials. No table and no
    figure shows such an interval."""
    return low >= 0 and high > TOO_WIDE * value > 0


def _interval(
    value: float, low: float | None, high: float | None, digits: int, percent: bool = False, limited: Limited | None = None
) -> str:
    if low is None or high is None:
        return ""
    if not percent and is_too_wide(value, low, high):
        return TOO_FEW
    sign = NARROW if limited is not None and is_narrow(limited) else ""
    return f"[{_digits_of(low, digits, percent)}, {_digits_of(high, digits, percent)}]{sign}"


def _digits_of(value: float | None, digits: int, percent: bool = False) -> str:
    if value is None:
        return NOTHING
    shown = f"{100 * value:.{digits}f}%" if percent else f"{value:.{digits}f}"
    return shown.removeprefix("-") if not re.search("[1-9]", shown) else shown
