"""Claims: sentences about results that a program can judge, as in `published.toml`.

A claim's `kind` says how its number is calculated:

direction   by a measure, one architecture lies above another
ratio       by a measure, one architecture is this many times another
rate        none of these outputs, answers or trials is so

No claim needs a common scale: which of two architectures takes more, how many times as much, and a share that one
counterexample refutes. What needs the paper's model and prompts, which nobody published, stands beside ours in the paper's
tables, without a verdict.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from bench.common.errors import nearest
from bench.read.analysis.metrics import METRICS
from bench.record.config import FAULT_FREE

NUMBERS = ("int64", "float64", "boolean")
"""The types of the metrics that a claim can be about."""


def _require_metric(name: object) -> object:
    if isinstance(name, str) and (name not in METRICS or METRICS[name].dtype not in NUMBERS):
        raise ValueError(
            f"unknown measure '{name}': {nearest(name, [metric.name for metric in METRICS if metric.dtype in NUMBERS])}"
        )
    return name


MeasureName = Annotated[str, BeforeValidator(_require_metric)]


class _Claim(BaseModel):
    """The fields of every claim.

    source   the paper, and its section or the cell of its table
    why      why the claim can be compared with our results
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    sentence: str
    source: str
    why: str = Field(min_length=1)
    scenario: str
    plan: str = FAULT_FREE


class DirectionClaim(_Claim):
    """A claim that the architecture `higher` has more of `measure` than the architecture `lower`. The table's `row` has the
    paper's figures for the claim."""

    kind: Literal["direction"]
    row: str
    measure: MeasureName
    higher: str
    lower: str

    @property
    def pair(self) -> tuple[str, str]:
        """The two architectures that the claim compares."""
        return self.higher, self.lower


class RatioClaim(_Claim):
    """A claim on the ratio of two means of `measure`: architecture `of` divided by architecture `to`. The published ratio
    follows from the means in the `row`."""

    kind: Literal["ratio"]
    row: str
    measure: MeasureName
    of: str
    to: str

    @property
    def pair(self) -> tuple[str, str]:
        """The two architectures that the claim compares."""
        return self.of, self.to


class RateClaim(_Claim):
    """A claim that a share in one architecture is 0: a single counterexample refutes it. `bench.read.claims.evidence` defines
    the share.

    counted   what is counted
    effect    silent_corruption: the effect of the delivered fault, under any plan
    """

    kind: Literal["rate"]
    counted: Literal["valid_but_wrong", "wrong_answers", "silent_corruption"]
    architecture: str
    effect: str = ""


Claim = Annotated[DirectionClaim | RatioClaim | RateClaim, Field(discriminator="kind")]
