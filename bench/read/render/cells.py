"""The kinds of cells of a table. A cell has its numbers, for which CSV has a column each, and one text, which Markdown and the
page show."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

from bench.read.analysis.per_solved import PerSolved
from bench.read.analysis.statistics import Limited, Mean, RateDifference, Ratio, Share, is_narrow

NOTHING, UNKNOWN, NONE_SOLVED, NOT_MEASURED = "n/a", "unknown", "none solved", "not measured"
TOO_FEW, MAX_RELATIVE_BOUND = "(too few to say)", 20
"""`TOO_FEW` replaces the interval of an amount if the interval ends above MAX_RELATIVE_BOUND times the amount."""
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
            The suffix of the column's title ("" for the value itself) -> a number; None for an unknown number.
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
        return _number_text(self.value, self.digits, self.percent)

    def numbers(self) -> dict[str, object]:
        return {"": self.value}


@dataclass(frozen=True)
class Estimate(NumberCell):
    """A mean measured in this run, with its standard deviation and interval. `with_n`: whether the cell shows its N, as it
    must if N differs from that of the row."""

    mean: Mean
    digits: int = 0
    with_n: bool = False

    def text(self) -> str:
        """Return the mean ± its standard deviation, with its interval and, if asked for, its N."""
        mean = self.mean
        if mean.mean is None:
            return NOTHING
        value, sd = _number_text(mean.mean, self.digits), _number_text(mean.sd, self.digits)
        interval = _interval_text(mean.mean, mean.low, mean.high, self.digits, limited=mean) or NOTHING
        text = f"{value} ± {sd} {interval}" if mean.sd is not None else f"{value} (sd, interval {NOTHING})"
        return f"{text}, N={mean.n}" if self.with_n else text

    def numbers(self) -> dict[str, object]:
        mean = self.mean
        return {"": mean.mean, " sd": mean.sd, " low": mean.low, " high": mean.high, " n": mean.n}


@dataclass(frozen=True)
class BoundedNumber(NumberCell):
    """A number with its 95% interval. `limited` is the measured number whose limits a note can name; None if there is none."""

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
            percent: Whether it is shown in percent.

        Returns:
            The cell.
        """
        return cls(value_of(measured), measured.low, measured.high, digits, percent, measured)

    def text(self) -> str:
        """Return the number with its interval."""
        if self.value is None:
            return NOTHING
        interval = (
            _interval_text(self.value, self.low, self.high, self.digits, self.percent, self.limited) or f"(interval {NOTHING})"
        )
        return f"{_number_text(self.value, self.digits, self.percent)} {interval}"

    def numbers(self) -> dict[str, object]:
        return {"": self.value, " low": self.low, " high": self.high}


@dataclass(frozen=True)
class AdjustedP(NumberCell):
    """A p-value after a correction.

    floor  the least p-value before correction that this number of pairs can give, if `p` comes from that value; else None. Then
           `p` shows how few pairs there were, not how little the arms differ
    errs   how often the test at 5% found a difference where there was none, in the worst of the simulated worlds with this many
           pairs; None if that is not more often than 5%
    """

    p: float | None
    floor: float | None = None
    errs: float | None = None

    def text(self) -> str:
        """Return p, with a mark if it is at the floor, and how often the test errs."""
        if self.p is None:
            return "–"
        text = f"{_number_text(self.p, 3)}{'' if self.floor is None else ' (floor)'}"
        return text if self.errs is None else f"{text}, errs in {_number_text(self.errs, 1, percent=True)}"

    def numbers(self) -> dict[str, object]:
        return {"": self.p, " floor": self.floor, " errs": self.errs}


@dataclass(frozen=True)
class Rate(NumberCell):
    """A rate k / n with its interval. Percentages have one digit after the point, so that 2/100 and 3/1000 look different."""

    share: Share

    def text(self) -> str:
        """Return k/n, the rate and its interval."""
        share = self.share
        if share.rate is None:
            return f"{NOTHING} (0/0)"
        interval = _interval_text(share.rate, share.low, share.high, 1, percent=True, limited=share)
        return f"{share.k}/{share.n} = {_number_text(share.rate, 1, percent=True)} {interval}"

    def numbers(self) -> dict[str, object]:
        share = self.share
        return {"": share.rate, " low": share.low, " high": share.high, " k": share.k, " n": share.n}


@dataclass(frozen=True)
class RateGap(NumberCell):
    """A paired difference of two rates, with the number of pairs gained and lost."""

    gap: RateDifference

    def text(self) -> str:
        """Return the difference with its interval, and the numbers of pairs gained and lost."""
        gap = self.gap
        if gap.difference is None:
            return NOTHING
        interval = _interval_text(gap.difference, gap.low, gap.high, 1, percent=True, limited=gap)
        return f"{_number_text(gap.difference, 1, percent=True)} {interval}, {gap.gained} gained, {gap.lost} lost"

    def numbers(self) -> dict[str, object]:
        gap = self.gap
        return {"": gap.difference, " low": gap.low, " high": gap.high, " gained": gap.gained, " lost": gap.lost}


@dataclass(frozen=True)
class Spent(NumberCell):
    """The amount spent per solved trial, with the whole amount and the number of solved trials. An unknown amount is shown as
    a word, never as 0."""

    per_solved: PerSolved
    digits: int = 0

    def text(self) -> str:
        """Return the amount and the number of solved trials, the amount for each, and its interval."""
        per_solved = self.per_solved
        if not per_solved.trials:
            return NOTHING
        if per_solved.spent is None:
            return UNKNOWN
        spent = _number_text(per_solved.spent, self.digits)
        if per_solved.value is None:
            return f"{NONE_SOLVED} ({spent} in {per_solved.trials} trials)"
        low, high = per_solved.low, per_solved.high
        interval = _interval_text(per_solved.value, low, high, self.digits, limited=per_solved.ratio) or f"(interval {NOTHING})"
        return f"{spent}/{per_solved.solved} = {_number_text(per_solved.value, self.digits)} {interval}"

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
        """Return the mean, ± the standard deviation if one was published."""
        if self.mean is None:
            return "–"
        value = _number_text(self.mean, self.digits, self.percent)
        return value if self.sd is None else f"{value} ± {_number_text(self.sd, self.digits, self.percent)}"

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


@dataclass(frozen=True)
class NumberInWords(NumberCell):
    """A sentence with numbers, such as a number and its verdict. The page groups their thousands."""

    shown: str

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
    """Whether the interval of an amount is so wide that it only says that there were too few trials. No table and no figure
    shows such an interval."""
    return low >= 0 and high > MAX_RELATIVE_BOUND * value > 0


def _interval_text(
    value: float, low: float | None, high: float | None, digits: int, percent: bool = False, limited: Limited | None = None
) -> str:
    """Return an interval as text, with a sign if it is too narrow; TOO_FEW if it is too wide, and "" if there is none."""
    if low is None or high is None:
        return ""
    if not percent and is_too_wide(value, low, high):
        return TOO_FEW
    sign = NARROW if limited is not None and is_narrow(limited) else ""
    return f"[{_number_text(low, digits, percent)}, {_number_text(high, digits, percent)}]{sign}"


def _number_text(value: float | None, digits: int, percent: bool = False) -> str:
    """Return a number as text with so many digits after the point. A number that rounds to 0 has no minus sign."""
    if value is None:
        return NOTHING
    text = f"{100 * value:.{digits}f}%" if percent else f"{value:.{digits}f}"
    return text.removeprefix("-") if not re.search("[1-9]", text) else text
