"""What a scorecard is made of, and its file: JSON of the same fields. `null` stands where a thing was not measured, never 0."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from bench.analysis.statistics import PassHat, Share
from bench.bounds import SPARSE, Lookup, Many, crowded, validated
from bench.errors import ResultsError
from bench.files import content_of
from bench.wording import first_violation

VERSION: Literal[1] = 1
"""Of the file. It changes where a field changes its meaning or goes; new fields may be added."""
Whose = Literal["simulated", "recorded", "live"]
ALL_CRASHES = "process:*"
CONTROL = "control"
MOST_BYTES = 64 * 2**20


def _is_empty(text: str) -> bool:
    return not text


@dataclass(frozen=True)
class RatePerFailure:
    """So much for each failure, or a ratio, with its 95% interval.

    n      how many trials it is of
    units  of how many units the interval is: instances, or trials where there is one instance
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    units: int


@dataclass(frozen=True)
class HarmRates:
    """One kind of damage, of the struck trials that have a control.

    effects       how many effects more than their controls did, less how many fewer
    more, fewer   these two apart
    per_100       effects for 100 failures
    after         the struck trials in which it happened more often than in their control
    """

    effects: int
    more: int
    fewer: int
    per_100: RatePerFailure
    after: Share


@dataclass(frozen=True)
class Struck:
    """One system's trials that one kind of failure struck, and no other.

    by          `process:POINT` for a crash at that point, `process:*` for crashes at any, `POINT:EFFECT` for other faults
    failures    how many: crashes are counted by processes that died
    trials      struck, errors left out; `instances`: how many different ones; `distinct`: how many are no copies, which went
                the same course in the same task: the same outcome, tokens, calls and damage; None in earlier scorecards
    right       of these, those that finished right; `pass_hat`: the chance that k of them all do
    paired      how many of the trials have a control; of these are `any_harm`, the struck trials with damage of any kind beyond
                it, and `harm` by kind
    compared    how many of these have an answer in both; of these are `work` and `recovery`
    work        what they took of tokens, calls (of the model), tool_calls, by what their controls took: 1 is no waste
    recovery    what they took beyond their controls for each failure: tokens, calls, tool_calls, seconds
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
    """What became of the planned faults of one kind."""

    by: str
    planned: int
    delivered: int
    not_applicable: int


@dataclass(frozen=True)
class ScoredTrial:
    """A struck trial, or one without faults (`by` is then `control`), so that two scorecards can be compared pair by pair.

    harm   effects damaged beyond the control, of all kinds, less those it damaged fewer; None without a control
    """

    instance: str
    repetition: int
    plan: str
    by: str
    failures: int
    right: bool
    harm: int | None


@dataclass(frozen=True)
class ScorecardRow:
    """One system in one world with one model.

    whose          whose the replies are
    control        of the trials without faults, those that finished right
    not_struck     trials under a fault plan that no fault struck: they say nothing of recovery, and are in no other number
    mixed          trials that failures of several kinds struck: under no kind
    errors         trials that ended in an error of ours or the endpoint's, or were not graded: left out
    two_counts_agree   the trials in which the damage counted from the journal is that counted from the world's tables alone
    own_log        of the trials whose system kept its own log of requests, tokens, tool calls and effects, those in which it is
                   that of our account; None where no system gave one
    reason         why none of the trials without faults finished right, where none did: what most of them ended with, and how
                   many of them; "" in earlier scorecards
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
    reason: Annotated[str, Field(exclude_if=_is_empty)] = ""

    def struck_by(self, by: str) -> Struck | None:
        return next((struck for struck in self.struck if struck.by == by), None)


@dataclass(frozen=True)
class ScorecardWorld:
    """`schedule`: the digest of the fault schedule: of the seed, the plans' texts, what the instances ask, and the repetitions.
    Under the same digest two systems met the same faults at the same places."""

    name: str
    schedule: str
    seed: int | None
    instances: int
    repetitions: int
    plans: Many[str]


@dataclass(frozen=True)
class SourceRun:
    """A run that it was made from; `files`: the digests of its files, `code`: that of the code that ran it."""

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
    """Write it in one line: nobody reads it, and blanks would be a third of it."""
    return json.dumps(SCORECARD.dump_python(card, mode="json"), separators=(",", ":"), allow_nan=False) + "\n"


def read_scorecard(path: Path) -> Scorecard:
    """Raises ResultsError, in one line, for what is no scorecard of this version."""
    try:
        content = content_of(path, MOST_BYTES)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
    if why := crowded(content, SPARSE):
        raise ResultsError(f"{path}: is no scorecard: {why}")
    try:
        return validated(SCORECARD, content)
    except ValidationError as error:
        problem = f"{path}: is no scorecard of version {VERSION}: {first_violation(error).line}"
        raise ResultsError(f"{problem}; write it with `bench scorecard RUN --format json --to {path}`") from None
