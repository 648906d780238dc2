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

REPLY_KEY = ["scenario", "instance", "repetition", "model", "digest"]
"""Rows of `Run.replies` that agree in these columns are the same reply."""


def distinct_replies(replies: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `Run.replies` without a fault, one for each reply, in order. Of a reply that one architecture
    accepted and another rejected the rejected row is returned."""
    untouched = replies[~replies["exposed"]]
    ranks = untouched["kind"].map({kind: rank for rank, kind in enumerate((*KINDS, ""))})
    worst_first = untouched[REPLY_KEY].loc[ranks.sort_values(kind="stable").index]
    return untouched.loc[worst_first.index[~worst_first.duplicated()].sort_values()]


@dataclass(frozen=True)
class Rejections:
    """How many distinct replies of one model to one scenario's calls were rejected.

    subtask    what the calls asked for: a subtask, or `all`; None for the replies to all calls
    kinds      the kinds of rejection that are counted
    share      the share of rejected replies, with an interval by clusters
    counts_as  the effective number of independent replies: their number divided by the design effect
    reached    (the trials with a judged reply to these calls, the trials of all architectures that make these calls); None for
               the replies to all calls
    """

    scenario: str
    model: str
    subtask: str | None
    kinds: tuple[ViolationKind, ...]
    share: Share
    counts_as: float
    reached: tuple[int, int] | None


def natural_failures(run: Run) -> Iterator[Rejections]:
    """Yield the rejections by model, scenario and subtask: of any kind, and of each kind if several occurred.

    For all subtasks together also yield all schema failures together, and missing fields even if there are none.
    """
    replies = distinct_replies(run.replies)
    for model in run.names("model"):
        for scenario in run.names("scenario"):
            of_pair = replies[(replies["model"] == model) & (replies["scenario"] == scenario)]
            reached = _trials_reached(run, model, scenario)
            for subtask, part in of_pair.groupby("subtask", sort=False):
                each_kind = _kinds_in(part)
                rows = each_kind if len(each_kind) == 1 else [KINDS, *each_kind]  # a single kind is the same as any kind
                for kinds, share, counts_as in _rejection_shares(part, rows):
                    yield Rejections(scenario, model, str(subtask), kinds, share, counts_as, reached[str(subtask)])
            if len(of_pair):
                rows = [KINDS, MALFORMED, *_kinds_in(of_pair, "missing_field")]
                for kinds, share, counts_as in _rejection_shares(of_pair, rows):
                    yield Rejections(scenario, model, None, kinds, share, counts_as, None)


def _kinds_in(replies: pd.DataFrame, *always: ViolationKind) -> list[tuple[ViolationKind, ...]]:
    """Return each kind of rejection that occurred, and those that are `always` listed, as tuples of one kind."""
    present = {*replies["kind"].tolist(), *always}
    return [(kind,) for kind in KINDS if kind in present]


Kinds = tuple[ViolationKind, ...]


def _rejection_shares(replies: pd.DataFrame, kinds_by_row: Iterable[Kinds]) -> Iterator[tuple[Kinds, Share, float]]:
    """Yield for each tuple of kinds the share of replies with such a rejection, and the effective number of independent
    replies. The clusters are the instances, or the repetitions if there is a single instance."""
    instances = instances_of(replies)
    clusters = instances if len(set(instances)) > 1 else list(map(str, replies["repetition"].tolist()))
    for kinds in kinds_by_row:
        rejected = replies["kind"].isin(kinds).tolist()
        yield kinds, share_by_instance(clusters, rejected), independent_number(clusters, list(map(float, rejected)))


def _trials_reached(run: Run, model: str, scenario: str) -> Mapping[str, tuple[int, int]]:
    """Return subtask -> (number of trials that made a call for it, number of trials of architectures that make such a call).
    Replies that a fault touched count here too."""
    replies, trials = (
        frame.loc[frame["model"].eq(model) & frame["scenario"].eq(scenario), columns]
        for frame, columns in ((run.replies, ["subtask", "trial", "architecture"]), (run.trials, ["architecture"]))
    )
    trials_of = Counter(trials["architecture"].tolist())
    reached: dict[str, tuple[int, int]] = {}
    for subtask, of_subtask in replies.groupby("subtask"):
        possible = sum(trials_of[architecture] for architecture in set(of_subtask["architecture"]))
        reached[str(subtask)] = (of_subtask["trial"].nunique(), possible)
    return reached
