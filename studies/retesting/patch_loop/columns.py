"""The columns that all tables of the arms share, whoever wrote the patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bench.read.analysis.statistics import amount_of, mean_of, share_of
from bench.read.render.cells import Estimate, Rate
from bench.read.render.table import TableColumn

from .results import LoopResult, PatchedCase

Result = TypeVar("Result", PatchedCase, LoopResult)


@dataclass(frozen=True)
class ArmResults(Generic[Result]):
    """The results of an arm on all cases.

    under       the disruption, or the form of the patches
    reference   results on the same cases of the arm that believes no earlier result
    """

    under: str
    arm: str
    cases: Sequence[Result]
    reference: Sequence[Result]

    def ended(self, outcome: str) -> int:
        return sum(case.outcome == outcome for case in self.cases)


def arm_results(by_arm: Mapping[str, Mapping[str, Sequence[Result]]], reference: str | None = None) -> list[ArmResults[Result]]:
    """Return the arms in order. `reference` names the arm that believes no earlier result; None means the first."""
    return [
        ArmResults(under, arm, cases, arms[reference or next(iter(arms))])
        for under, arms in by_arm.items()
        for arm, cases in arms.items()
    ]


def _saved(results: ArmResults[Any]) -> Estimate:
    pairs = zip(results.cases, results.reference, strict=True)
    return Estimate(mean_of([float(other.executions - case.executions) for case, other in pairs]), 1)


def _beliefs(results: ArmResults[Any]) -> str:
    return f"{sum(case.wrong for case in results.cases):,} of {sum(case.believed for case in results.cases):,}"


OUTCOMES = (
    TableColumn[ArmResults[Any]]("Solved", lambda each: Rate(share_of(each.ended("solved"), len(each.cases)))),
    TableColumn[ArmResults[Any]]("Wrong", lambda each: each.ended("wrong")),
    TableColumn[ArmResults[Any]]("Gave up", lambda each: each.ended("gave_up")),
)
COSTS = (
    TableColumn[ArmResults[Any]]("Tokens", lambda each: Estimate(amount_of([case.tokens for case in each.cases]))),
    TableColumn[ArmResults[Any]]("Executions", lambda each: Estimate(amount_of([case.executions for case in each.cases]), 1)),
    TableColumn[ArmResults[Any]]("Executions saved", _saved),
)
WRONG_BELIEFS = TableColumn[ArmResults[Any]]("Wrong beliefs", _beliefs)
