"""What rejections teach: a policy is learned from one run's trials, and judged in another run, on instances it has not seen.

`bench learn` learns it: `bench.rerun.learning` says how.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.read.render.drawing import Picture
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.policy import LearnedPolicy, PackPolicy

NOTES = (
    "the split is by instance: none that a policy was learned on is run, by any architecture of the run",
    "rejected: of the distinct first replies for a subtask in training, how many the verifier turned away",
    "a policy's digest is in the ids of the trials that follow it",
)


def tables(run: Run) -> Iterator[Table]:
    """Yield a table of what each policy learned, from what, and on what it is judged. Raise ResultsError if there is no
    policy."""
    learned = [
        LearnedPack(scenario, name, policy, policy.packs[pack])
        for name, policy in run.manifest.policies.items()
        for scenario in run.names("scenario")
        if (pack := scenario.partition(":")[0]) in policy.packs
    ]
    if not learned:
        raise ResultsError("needs an architecture with a learned policy")

    def source(row: LearnedPack) -> str:
        policy = row.policy
        model = model_label(run, policy.model) if policy.model in run.manifest.models else policy.model
        return f"{policy.architecture} under {policy.plan} of {policy.run}, model {model}"

    columns = (
        TableColumn[LearnedPack]("Scenario", lambda row: row.scenario),
        TableColumn[LearnedPack]("Architecture", lambda row: row.architecture),
        TableColumn[LearnedPack]("Learned from", source),
        TableColumn[LearnedPack]("Training instances", lambda row: _named(row.pack.instances)),
        TableColumn[LearnedPack]("Fresh instances", lambda row: _named(run.manifest.scenarios[row.scenario].instances)),
        TableColumn[LearnedPack]("Calls", lambda row: "; ".join(" + ".join(call) for call in row.pack.calls)),
        TableColumn[LearnedPack]("Rejected", lambda row: _rejected(row.pack)),
    )
    yield table_of("study-learning", "What was learned, and what it is judged on", columns, learned, NOTES)


@dataclass(frozen=True)
class LearnedPack:
    """What an architecture's policy learned about the pack of a scenario."""

    scenario: str
    architecture: str
    policy: LearnedPolicy
    pack: PackPolicy


def _named(instances: Collection[str]) -> str:
    return f"{len(instances)}: {', '.join(instances)}"


def _rejected(pack: PackPolicy) -> str:
    return "; ".join(f"{subtask} {replies.rejected} of {replies.of}" for subtask, replies in pack.first_replies.items())


def pictures(run: Run) -> Iterator[Picture]:
    """Yield nothing: this study has only a table."""
    del run
    yield from ()
