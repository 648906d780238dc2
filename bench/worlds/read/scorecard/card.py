"""The parts of a scorecard, and its JSON file, which has the same fields. `null` means not measured, never 0."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from gzip import GzipFile
from pathlib import Path
from typing import IO, Annotated, Literal, cast

from pydantic import Field, TypeAdapter, ValidationError

from bench.common.bounds import SPARSE, Lookup, Many, crowded, validated
from bench.common.errors import ResultsError
from bench.common.files import opened, within
from bench.common.wording import first_violation
from bench.read.analysis.statistics import PassHat, Share

VERSION: Literal[1] = 1
"""The version of the file. It changes when a field changes its meaning or is removed; new fields can be added."""
Whose = Literal["simulated", "recorded", "live"]
ALL_CRASHES = "process:*"
CONTROL = "control"
MOST_BYTES = 64 * 2**20


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

    effects       damaged effects minus the control's
    more, fewer   the sums of trials with more, and with fewer, than their control
    per_100       effects for 100 failures
    after         the share of struck trials with more of it than their control
    """

    effects: int
    more: int
    fewer: int
    per_100: RatePerFailure
    after: Share


@dataclass(frozen=True)
class Struck:
    """The trials of one system that only one kind of failure struck.

    by          `process:POINT` for a crash at that point, `process:*` for crashes at any point, `POINT:EFFECT` for other faults
    failures    number of failures; for crashes, processes that died
    trials      number of struck trials without errors
    instances   number of different instances among them
    right       the share of these trials that finished right
    pass_hat    the chance that k of these trials all finish right
    paired      number of these trials with a control
    any_harm    the share of paired trials with more damage of any kind than their control
    harm        the same by kind of damage
    compared    number of pairs with an answer in both trials
    work        tokens, calls (of the model) and tool_calls of compared trials, divided by their controls': 1 is no waste
    recovery    tokens, calls, tool_calls and seconds beyond the controls, for each failure
    distinct    number of trials without copies (trials of one task with equal outcome, tokens, calls, damage); None in earlier
                scorecards
    """

    by: str
    failures: int
    trials: int
    instances: int
    right: Share
    pass_hat: Many[PassHat]
    paired: int
    any_harm: Share
    harm: Lookup[str, HarmRates]
    compared: int
    work: Lookup[str, RatePerFailure]
    recovery: Lookup[str, RatePerFailure]
    distinct: int | None = None

    @property
    def has_copies(self) -> bool:
        return self.distinct is not None and self.distinct < self.trials


@dataclass(frozen=True)
class Receipts:
    by: str
    planned: int
    delivered: int
    not_applicable: int


@dataclass(frozen=True)
class ScoredTrial:
    """A struck trial, or a fault-free trial (`by` is `control`), so that two scorecards can be compared pair by pair.

    harm    damaged effects of all kinds minus the control's; None without a control
    harms   the same by kind of damage; None in earlier scorecards
    """

    instance: str
    repetition: int
    plan: str
    by: str
    failures: int
    right: bool
    harm: int | None
    harms: Annotated[Lookup[str, int] | None, Field(exclude_if=lambda harms: harms is None)] = None


@dataclass(frozen=True)
class ScorecardRow:
    """One system in one world with one model.

    whose          where the replies come from
    control        the share of fault-free trials that finished right
    not_struck     trials under a fault plan that no fault struck: they say nothing about recovery and are in no other number
    mixed          trials struck by several kinds of failures: counted under no kind
    errors         trials that ended in an error or were not graded: left out
    two_counts_agree   the share of trials in which journal and world's tables give the same count of damage
    own_log        of the trials whose system kept a log of requests, tokens, tool calls and effects, the share whose log agrees
                   with our account; None if there is no log
    reason         if no fault-free trial finished right, the most frequent reason and its count; "" in earlier scorecards
    """

    world: str
    model: str
    whose: Whose
    system: str
    control: Share
    control_pass_hat: Many[PassHat]
    struck: Many[Struck]
    receipts: Many[Receipts]
    trials: int
    not_struck: int
    mixed: int
    errors: int
    two_counts_agree: Share
    results: Many[ScoredTrial]
    own_log: Share | None = None
    reason: Annotated[str, Field(exclude_if=lambda reason: not reason)] = ""

    def struck_by(self, by: str) -> Struck | None:
        return next((struck for struck in self.struck if struck.by == by), None)


@dataclass(frozen=True)
class ScorecardWorld:
    """`schedule` is a digest of the seed, the plans' texts, what the instances ask, and the repetitions. Two systems with the
    same digest met the same faults at the same places."""

    name: str
    schedule: str
    seed: int | None
    instances: int
    repetitions: int
    plans: Many[str]


@dataclass(frozen=True)
class SourceRun:
    """A source run. `files` is the digest of its files, `code` the digest of the code that ran it."""

    run: str
    files: str
    code: str


@dataclass(frozen=True)
class Scorecard:
    version: Literal[1]
    kind: Literal["recovery scorecard"]
    sources: Many[SourceRun]
    worlds: Many[ScorecardWorld]
    rows: Many[ScorecardRow]
    notes: Many[str]


SCORECARD: TypeAdapter[Scorecard] = TypeAdapter(Scorecard)


def as_json(card: Scorecard) -> str:
    """Return the card as one line of JSON. Nobody reads it, and spaces would be a third of it."""
    return json.dumps(SCORECARD.dump_python(card, mode="json"), separators=(",", ":"), allow_nan=False) + "\n"


def read_scorecard(path: Path) -> Scorecard:
    """Read a scorecard, which may be packed by gzip. Raise ResultsError, with one line, if the file is no scorecard of this
    version."""
    try:
        with opened(path) as file:
            unpacked = cast(IO[bytes], GzipFile(fileobj=file)) if path.suffix == ".gz" else file
            content = within(unpacked, path, MOST_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise ResultsError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if why := crowded(content, SPARSE):
        raise ResultsError(f"{path}: is not a scorecard: {why}")
    try:
        return validated(SCORECARD, content)
    except ValidationError as error:
        problem = f"{path}: is not a scorecard of version {VERSION}: {first_violation(error).line}"
        raise ResultsError(
            f"{problem}; write it with `bench scorecard RUN --format json --to {str(path).removesuffix('.gz')}`"
        ) from None
