"""Claims: sentences about results that a program can judge, as in `published.toml` and the sources beside it.

A claim's `kind` says how its number is calculated:

direction   by a measure, one architecture lies above another
ratio       by a measure, one architecture is this many times another
part        one measure is this part of another, within one architecture
cell        one cell of a published table
rate        this share of outputs, answers or trials
degradation faults cost one architecture more solved tasks than another architecture, than other faults, or than none

`compares` says how that number is judged:

direction   the order, which needs no common scale
ratio       a proportion without a scale: of two architectures' means, or a share that is claimed to be none or all
level       the number itself, which is comparable only if the model and the prompts are the paper's
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bench.common.errors import nearest
from bench.read.analysis.metrics import METRICS
from bench.record.config import FAULT_FREE

NUMBERS = ("int64", "float64", "boolean")
"""The types of the metrics that a claim can be about."""


def _known(name: object) -> object:
    if isinstance(name, str) and (name not in METRICS or METRICS[name].dtype not in NUMBERS):
        raise ValueError(
            f"unknown measure '{name}': {nearest(name, [metric.name for metric in METRICS if metric.dtype in NUMBERS])}"
        )
    return name


MeasureName = Annotated[str, BeforeValidator(_known)]


class _Claim(BaseModel):
    """The fields of every claim.

    source   the paper, and its section or the cell of its table
    why      why the claim can be compared with our results
    about    `model`: the work of a model; `runtime`: what the runtime does with a reply, a crash or an error, which a simulated
             model can show too
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    sentence: str
    source: str
    why: str = Field(min_length=1)
    scenario: str
    plan: str = FAULT_FREE
    about: Literal["model", "runtime"] = "model"


class DirectionClaim(_Claim):
    """A claim that the architecture `higher` has more of `measure` than the architecture `lower`. The table's `row` has the
    paper's figures for the claim."""

    kind: Literal["direction"]
    compares: Literal["direction"]
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
    compares: Literal["ratio"]
    row: str
    measure: MeasureName
    of: str
    to: str

    @property
    def pair(self) -> tuple[str, str]:
        """The two architectures that the claim compares."""
        return self.of, self.to


class PartClaim(_Claim):
    """A claim on the mean of `measure` divided by the mean of `whole`, in one architecture."""

    kind: Literal["part"]
    compares: Literal["level"]
    measure: MeasureName
    whole: MeasureName
    architecture: str
    published: float = Field(gt=0.0)


class CellClaim(_Claim):
    """A claim on the mean of `measure` in one architecture. It is made from the published tables, and no file states it."""

    kind: Literal["cell"] = "cell"
    compares: Literal["level"] = "level"
    row: str
    measure: MeasureName
    architecture: str


OfRuntime = Literal["compensated_out_of_order", "stale_transitions"]
"""What the runtime alone decides, whatever the model proposes. Counted over all scenarios and fault plans."""
Counted = (
    Literal["natural_failures", "natural_failures_at", "valid_but_wrong", "wrong_answers", "silent_corruption"] | OfRuntime
)


class RateClaim(_Claim):
    """A claim on a share in one architecture. `bench.read.claims.evidence` defines the share.

    counted     what is counted; if the runtime alone decides it, `scenario` is "*"
    subtask     natural_failures_at: the subtask at which all of them are claimed to happen
    effect      silent_corruption: the effect of the delivered fault, under any plan
    published   None for natural failures, whose counts are in the same file
    """

    kind: Literal["rate"]
    compares: Literal["ratio", "level"]
    counted: Counted
    architecture: str
    subtask: str = ""
    effect: str = ""
    published: float | None = Field(None, ge=0.0, le=1.0)

    @property
    def says_none_or_all(self) -> bool:
        """Whether the claimed share is 0 or 1. A single counterexample then refutes the claim, and a count of all trials proves
        it."""
        return self.published in (0.0, 1.0)

    @model_validator(mode="after")
    def _a_share_of_some_is_a_level(self) -> RateClaim:
        if self.compares == "ratio" and not self.says_none_or_all:
            raise ValueError("a rate compares a ratio only where it is said to be 0 or 1; any other is a level")
        return self


class SideArm(NamedTuple):
    architecture: str
    plan: str
    told: str = ""


class Side(BaseModel):
    """An architecture under fault plans, with its loss: the share solved without a fault minus the share solved under these
    plans, pair by pair, as a mean over the plans. `told` names the equivalent of the claim's scenario that is run under the
    plans; "" means the scenario itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    architecture: str
    plans: tuple[str, ...] = Field(min_length=1)
    told: str = ""

    @property
    def arms(self) -> tuple[SideArm, ...]:
        return (SideArm(self.architecture, FAULT_FREE), *(SideArm(self.architecture, plan, self.told) for plan in self.plans))


class DegradationClaim(_Claim):
    """A claim that `higher` loses more than `lower`. Without a `lower`, it claims that `higher` loses something.

    strikes     every: a fault strikes each attempt, so that no trial can be solved, and nothing is judged
    published   the figures in the source's words; nothing is compared with them
    """

    kind: Literal["degradation"]
    compares: Literal["direction"]
    strikes: Literal["once", "every"] = "once"
    higher: Side
    lower: Side | None = None
    published: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        """The two architectures that the claim compares; the same one twice if the claim has no `lower` side."""
        return self.higher.architecture, self.sides[-1].architecture

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.higher, self.lower) if self.lower else (self.higher,)


Claim = DirectionClaim | RatioClaim | PartClaim | CellClaim | RateClaim | DegradationClaim
WrittenClaim = Annotated[DirectionClaim | RatioClaim | PartClaim | RateClaim | DegradationClaim, Field(discriminator="kind")]
"""A claim as the file can hold it."""


ANYWHERE = "*"
"""The scenario of a claim about any scenario of a run."""


def is_structural(claim: Claim) -> bool:
    """Return whether the claim is about structure, whatever the model: a direction or a ratio is, a level is not."""
    return claim.compares != "level"
