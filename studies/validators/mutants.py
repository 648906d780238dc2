"""What a run's manifest keeps of the mutants of a pack's reference outputs."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter

from bench.common.bounds import BoundedTable, Listed, Many


@dataclass(frozen=True)
class Survivor:
    """A mutant that schema and checks accept: its change, and how often it was drawn.

    too_weak   why it is not sufficient, in an architecture that asks this; "" if it is
    harmless   whether the reference answer with this output in its place is graded correct
    """

    change: str
    times: int
    too_weak: str
    harmless: bool


@dataclass(frozen=True)
class Mutants:
    """The mutants of one subtask's output by one effect. `made` counts mutants that differ from the reference; 0 if the effect
    cannot strike this output. `caught`: reason -> number rejected."""

    scenario: str
    subtask: str
    effect: str
    made: int
    caught: BoundedTable[str, int]
    survivors: Many[Survivor]


KEPT = TypeAdapter(Listed[Mutants])
