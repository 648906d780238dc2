"""The types of a scorecard's parts. None means not measured, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bench.read.analysis.statistics import PassHat, Share

ReplyOrigin = Literal["simulated", "recorded", "live"]
ALL_CRASHES = "process:*"
"""The name of the failure that stands for crashes at any point."""


@dataclass(frozen=True)
class RatePerFailure:
    """An amount for each failure, or a ratio, with its 95% interval.

    n      the number of trials
    units  the units of the interval: the number of instances, or of trials if there is one instance
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    units: int


@dataclass(frozen=True)
class HarmRates:
    """The rates of one kind of damage, over the struck trials that have a control.

    effects       the number of damaged effects minus the controls' number
    more, fewer   the two parts of `effects`: the surplus of trials with more damage than their control, and the shortfall of
                  trials with less
    per_100       `effects` for 100 failures
    after         the share of struck trials with more of this damage than their control
    """

    effects: int
    more: int
    fewer: int
    per_100: RatePerFailure
    after: Share


@dataclass(frozen=True)
class Struck:
    """The results of one system in the trials in which exactly one kind of failure happened.

    by          `process:POINT` for a crash at that point, `process:*` for crashes at any point, `POINT:EFFECT` for other faults
    failures    number of failures; for crashes, processes that died
    trials      number of struck trials without errors
    instances   number of different instances among them
    right       the share of these trials that finished right
    pass_hat    k -> the chance that k trials, drawn from these, all finish right
    paired      number of these trials with a control
    any_harm    the share of paired trials with more damage of any kind than their control
    harm        kind of damage -> its rates
    compared    number of pairs with an answer in both trials
    work        tokens, calls (of the model) and tool_calls of compared trials, divided by their controls': 1 is no waste
    recovery    tokens, calls, tool_calls and seconds beyond the controls, for each failure
    distinct    number of trials, where trials of one task with equal outcome, tokens, calls and damage count once; None if
                not counted
    """

    by: str
    failures: int
    trials: int
    instances: int
    right: Share
    pass_hat: tuple[PassHat, ...]
    paired: int
    any_harm: Share
    harm: Mapping[str, HarmRates]
    compared: int
    work: Mapping[str, RatePerFailure]
    recovery: Mapping[str, RatePerFailure]
    distinct: int | None = None

    @property
    def has_copies(self) -> bool:
        """Whether some trials are copies of others."""
        return self.distinct is not None and self.distinct < self.trials


@dataclass(frozen=True)
class Receipts:
    """The number of planned, delivered and not applicable faults of one kind."""

    by: str
    planned: int
    delivered: int
    not_applicable: int


@dataclass(frozen=True)
class ScorecardRow:
    """One system in one world with one model.

    whose          the origin of the replies
    control        the share of fault-free trials that finished right
    not_struck     trials under a fault plan that no fault struck: they say nothing about recovery and are in no other number
    mixed          trials struck by several kinds of failures: counted under no kind
    errors         trials that ended in an error or were not graded: left out
    two_counts_agree   the share of trials in which journal and world's tables give the same count of damage
    reason         if no fault-free trial finished right, the most frequent reason and its count; else ""
    """

    world: str
    model: str
    whose: ReplyOrigin
    system: str
    control: Share
    control_pass_hat: tuple[PassHat, ...]
    struck: tuple[Struck, ...]
    receipts: tuple[Receipts, ...]
    trials: int
    not_struck: int
    mixed: int
    errors: int
    two_counts_agree: Share
    reason: str = ""

    def struck_by(self, by: str) -> Struck | None:
        """Return the trials that this kind of failure struck; None if the row has none."""
        return next((struck for struck in self.struck if struck.by == by), None)


@dataclass(frozen=True)
class ScorecardWorld:
    """A world of a scorecard. `schedule` is a digest of the seed, the plans' texts, the instances' tasks, and the repetitions.
    Two systems with the same digest met the same faults at the same places."""

    name: str
    schedule: str
    seed: int | None
    instances: int
    repetitions: int
    plans: tuple[str, ...]


@dataclass(frozen=True)
class Scorecard:
    """The scorecard: its worlds, a row for each system in each world, and notes."""

    worlds: tuple[ScorecardWorld, ...]
    rows: tuple[ScorecardRow, ...]
    notes: tuple[str, ...]
