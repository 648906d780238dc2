"""Natural failures: how many distinct replies were rejected although no fault had touched them, by kind.

A reply counts once, whatever the number of its subtasks and of the arms and fault plans that got it. Replies of one repetition
depend on each other, so a rate's interval clusters by repetition, or by instance if a pack has several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from bench.read.analysis.arms import instances_of
from bench.read.analysis.frames import Run
from bench.read.analysis.replies import KINDS, MALFORMED
from bench.read.analysis.statistics import Share, independent_number, share_by_instance
from bench.record.events import ViolationKind

IDENTITY = ["scenario", "instance", "repetition", "model", "digest"]
"""Replies that agree in these columns are one reply."""


def distinct_replies(replies: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `Run.replies` that no fault touched, each reply once, in order. A reply that one architecture accepted
    and another rejected counts as rejected."""
    untouched = replies[~replies["exposed"]]
    ranks = untouched["kind"].map({kind: rank for rank, kind in enumerate((*KINDS, ""))})
    worst_first = untouched[IDENTITY].loc[ranks.sort_values(kind="stable").index]
    return untouched.loc[worst_first.index[~worst_first.duplicated()].sort_values()]


@dataclass(frozen=True)
class Rejections:
    """How many distinct replies of one model to one scenario's calls were rejected.

    subtask    what the calls asked for: a subtask, or `all`; None for the replies to all calls
    kinds      the kinds of rejection that are counted
    share      of the replies judged, with an interval by clusters
    counts_as  the number of independent replies: their number by the design effect
    reached    trials in which such a call was judged, of the trials whose architecture makes one
    """

    scenario: str
    model: str
    subtask: str | None
    kinds: tuple[ViolationKind, ...]
    share: Share
    counts_as: float
    reached: tuple[int, int] | None


def natural_failures(run: Run) -> Iterator[Rejections]:
    """Yield the rejections by model, scenario and subtask: a row for any kind, and a row for each kind that occurred. If both
    are the same, there is one row.

    Over all subtasks also all schema failures together, and missing fields even if there are none.
    """
    replies = distinct_replies(run.replies)
    for model in run.names("model"):
        for scenario in run.names("scenario"):
            of_pair = replies[(replies["model"] == model) & (replies["scenario"] == scenario)]
            reached = _reach(run, model, scenario)
            for subtask, part in of_pair.groupby("subtask", sort=False):
                each = _each_in(part)
                every = each if len(each) == 1 else (KINDS, *each)
                for kinds, share, counts_as in _rejection_shares(part, every):
                    yield Rejections(scenario, model, str(subtask), kinds, share, counts_as, reached[str(subtask)])
            if len(of_pair):
                every = (KINDS, MALFORMED, *_each_in(of_pair, "missing_field"))
                for kinds, share, counts_as in _rejection_shares(of_pair, every):
                    yield Rejections(scenario, model, None, kinds, share, counts_as, None)


def _each_in(replies: pd.DataFrame, *always: ViolationKind) -> list[tuple[ViolationKind, ...]]:
    there = {*replies["kind"].tolist(), *always}
    return [(kind,) for kind in KINDS if kind in there]


Kinds = tuple[ViolationKind, ...]


def _rejection_shares(replies: pd.DataFrame, every: Iterable[Kinds]) -> Iterator[tuple[Kinds, Share, float]]:
    """Yield the share of replies with these kinds of rejection, and the number of independent replies. The clusters are the
    instances, or the repetitions if there is a single instance."""
    instances = instances_of(replies)
    units = instances if len(set(instances)) > 1 else list(map(str, replies["repetition"].tolist()))
    for kinds in every:
        held = replies["kind"].isin(kinds).tolist()
        yield kinds, share_by_instance(units, held), independent_number(units, [float(rejected) for rejected in held])


def _reach(run: Run, model: str, scenario: str) -> Mapping[str, tuple[int, int]]:
    """Return subtask -> (number of trials that made a call for it, number of trials of architectures that make such a call).
    Replies that a fault touched count here too."""
    replies, trials = (
        frame.loc[frame["model"].eq(model) & frame["scenario"].eq(scenario), columns]
        for frame, columns in ((run.replies, ["subtask", "trial", "architecture"]), (run.trials, ["architecture"]))
    )
    of_architecture = Counter(trials["architecture"].tolist())
    return {
        str(subtask): (made["trial"].nunique(), sum(of_architecture[name] for name in set(made["architecture"])))
        for subtask, made in replies.groupby("subtask")
    }
