"""Natural failures: the distinct replies that no fault had touched, and how many of them were rejected, by kind.

A reply is counted once, whatever the number of subtasks that it held and of the arms and fault plans that were given it. One
reply of a repetition is asked for because of another, so a rate's interval clusters by repetition, and by instance where a pack
has several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from bench.analysis.arms import instances_of
from bench.analysis.frames import Run
from bench.analysis.replies import KINDS, MALFORMED
from bench.analysis.statistics import Share, independent_number, share_by_instance
from bench.runtime.verification import ViolationKind

IDENTITY = ["scenario", "instance", "repetition", "model", "digest"]
"""What makes two replies one."""


def distinct(replies: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `Run.replies` that no fault touched, each reply once, in their order. A reply that one architecture
    accepted and another rejected is rejected."""
    untouched = replies[~replies["exposed"]]
    ranks = untouched["kind"].map({kind: rank for rank, kind in enumerate((*KINDS, ""))})
    worst_first = untouched.loc[ranks.sort_values(kind="stable").index]
    return worst_first.drop_duplicates(IDENTITY).sort_index()


@dataclass(frozen=True)
class Rejections:
    """How many distinct replies of one model to one scenario's calls were rejected.

    subtask    what the calls asked for: a subtask, or `all`; None for the replies to all calls
    kinds      the kinds of rejection that are counted
    share      of the replies judged, with an interval by clusters
    counts_as  as how many independent replies they count: their number by the design effect
    reached    in how many of the trials whose architecture makes such a call one was judged, and of how many
    """

    scenario: str
    model: str
    subtask: str | None
    kinds: tuple[ViolationKind, ...]
    share: Share
    counts_as: float
    reached: tuple[int, int] | None


def natural_failures(run: Run) -> Iterator[Rejections]:
    """By model, scenario and subtask, of whatever kind and of each that came up there; one of both where they are the same.
    Over all subtasks also of the kinds that do not fit a schema, together, and of a missing field even where none came up."""
    replies = distinct(run.replies)
    for model in run.names("model"):
        for scenario in run.names("scenario"):
            of_pair = replies[(replies["model"] == model) & (replies["scenario"] == scenario)]
            for subtask in dict.fromkeys(of_pair["subtask"].tolist()):
                part, reached = of_pair[of_pair["subtask"] == subtask], _reached(run, model, scenario, subtask)
                each = _each_in(part)
                for kinds in each if len(each) == 1 else (KINDS, *each):
                    yield _rejections(part, scenario, model, subtask, kinds, reached)
            if len(of_pair):
                for kinds in (KINDS, MALFORMED, *_each_in(of_pair, "missing_field")):
                    yield _rejections(of_pair, scenario, model, None, kinds, None)


def _each_in(replies: pd.DataFrame, *always: ViolationKind) -> list[tuple[ViolationKind, ...]]:
    there = {*replies["kind"].tolist(), *always}
    return [(kind,) for kind in KINDS if kind in there]


def _rejections(
    replies: pd.DataFrame,
    scenario: str,
    model: str,
    subtask: str | None,
    kinds: tuple[ViolationKind, ...],
    reached: tuple[int, int] | None,
) -> Rejections:
    held = replies["kind"].isin(kinds)
    units = _units(replies)
    counts_as = independent_number(units, held.astype(float).tolist())
    return Rejections(scenario, model, subtask, kinds, share_by_instance(units, held.tolist()), counts_as, reached)


def _units(replies: pd.DataFrame) -> list[str]:
    """The clusters: instances, or of a sole one its repetitions."""
    instances = instances_of(replies)
    return instances if len(set(instances)) > 1 else [str(repetition) for repetition in replies["repetition"]]


def _reached(run: Run, model: str, scenario: str, subtask: str) -> tuple[int, int]:
    """Exposed replies count as well: they, too, are of trials that came so far."""
    made, trials = (rows[rows["model"].eq(model) & rows["scenario"].eq(scenario)] for rows in (run.replies, run.trials))
    made = made[made["subtask"].eq(subtask)]
    return made["trial"].nunique(), int(trials["architecture"].isin(set(made["architecture"])).sum())
