"""The form of claims: sentences about results that a program can judge, as in `published.toml`.

A claim's `kind` says what it states:

direction   the mean of a measure is higher in one architecture than in another
ratio       the mean of a measure in one architecture is a multiple of the mean in another
rate        a share of outputs, answers or trials is 0

No claim needs a common scale of the paper's numbers and ours: which of two architectures takes more, how many times as much,
and a share that one counterexample refutes. The paper's numbers that depend on its model and prompts, which were not
published, are shown beside ours in the paper's tables, without a verdict."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from bench.common.errors import nearest
from bench.read.analysis.metrics import METRICS
from bench.record.config import FAULT_FREE

NUMBER_DTYPES = ("int64", "float64", "boolean")
"""The types in pandas of metrics that a claim can be about."""


def _require_metric(name: object) -> object:
    """Return the name of a measure. Raises ValueError if no metric with numbers has this name."""
    if isinstance(name, str) and (name not in METRICS or METRICS[name].dtype not in NUMBER_DTYPES):
        raise ValueError(
            f"unknown measure '{name}': {nearest(name, [metric.name for metric in METRICS if metric.dtype in NUMBER_DTYPES])}"
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
    """A claim that the mean of `measure` is higher in the architecture `higher` than in `lower`. The paper's figures for it
    are in the `row` of its table."""

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
    """A claim on the mean of `measure` in the architecture `of`, divided by the mean in `to`. The published ratio follows from
    the means in the `row` of the paper's table."""

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

    counted   the outputs, answers or trials whose share is claimed to be 0
    effect    for silent_corruption: the effect of the delivered fault, under any plan
    """

    kind: Literal["rate"]
    counted: Literal["valid_but_wrong", "wrong_answers", "silent_corruption"]
    architecture: str
    effect: str = ""


Claim = Annotated[DirectionClaim | RatioClaim | RateClaim, Field(discriminator="kind")]
