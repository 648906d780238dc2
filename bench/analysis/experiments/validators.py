"""Validators: the mutation score of each subtask's schema and checks, and the mutants that survived them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.analysis.faults import FORM
from bench.analysis.frames import Run
from bench.analysis.statistics import Share, share_of
from bench.errors import ResultsError

UNREADABLE = tuple(reason for reason in FORM if reason != "schema")


@dataclass(frozen=True)
class Survivor:
    """A mutant that was accepted. `too_weak`: why it is not sufficient, "" where it is."""

    change: str
    times: int
    too_weak: str
    harmless: bool


@dataclass(frozen=True)
class Score:
    """Of one subtask's output and one effect.

    caught      of the mutants that were made, those that were rejected: as unreadable, by the schema, by a check
    dangerous   of the same, those that were accepted and make the reference answer wrong
    too_weak    how many of the survivors an architecture that asks for sufficiency would reject
    """

    scenario: str
    subtask: str
    effect: str
    caught: Share
    unreadable: int
    by_schema: int
    by_check: int
    dangerous: Share
    too_weak: int
    survivors: tuple[Survivor, ...]


def mutation_scores(run: Run) -> list[Score]:
    """By scenario, subtask and effect, as the run's manifest has them; an effect that cannot strike an output is left out.

    Raises ResultsError where the manifest has none: the run's config did not ask for them.
    """
    found = run.manifest.get("mutants")
    if not found:
        raise ResultsError('its manifest holds no mutants; run it again with a config that says experiment = "validators"')
    return [_score(one) for one in found if one["made"]]


def _score(one: Mapping[str, Any]) -> Score:
    caught, made = one["caught"], one["made"]
    survivors = tuple(Survivor(**survivor) for survivor in one["survivors"])
    harm = sum(survivor.times for survivor in survivors if not survivor.harmless)
    weak = sum(survivor.times for survivor in survivors if survivor.too_weak)
    return Score(
        scenario=one["scenario"],
        subtask=one["subtask"],
        effect=one["effect"],
        caught=share_of(sum(caught.values()), made),
        unreadable=sum(caught.get(reason, 0) for reason in UNREADABLE),
        by_schema=caught.get("schema", 0),
        by_check=caught.get("check", 0),
        dangerous=share_of(harm, made),
        too_weak=weak,
        survivors=survivors,
    )
