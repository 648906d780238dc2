"""What rejections teach: a policy is learned from one run's trials, and judged in another run, on instances it has not seen.

`bench more learn` learns it: `bench.rerun.learning` says how. A second table says whether a cut that was learned, or that a
model derives, pays beside each cut by the authors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import pandas as pd

from bench.common.errors import ResultsError
from bench.read.analysis.arms import UNUSABLE
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Pair, holm, in_common, mean_of
from bench.read.claims.break_even import BreakEven, break_even, rate_in_words
from bench.read.claims.sample_size import pairs_after_correction
from bench.read.render.cells import AdjustedP
from bench.read.render.drawing import Picture
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.policy import LearnedPolicy, PackPolicy

from ..rises import Rises, rises

LEVEL = 0.05
MADE = ("learned_policy", "derived_subtasks")
"""Architectures whose cut no author made."""

NOTES = (
    "the split is by instance: none that a policy was learned on is run, by any architecture of the run",
    "rejected: of the distinct first replies for a subtask in training, how many the verifier turned away",
    "a policy's digest is in the ids of the trials that follow it",
)


def tables(run: Run) -> Iterator[Table]:
    """Yield what each policy learned, from what, and on what it is judged; then whether it pays. Raise ResultsError if there is
    no policy."""
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
    yield _payoffs_table(run)


@dataclass(frozen=True)
class Payoff:
    """A cut that was learned or derived beside a cut by the authors, on the same instances under the same faults.

    tokens, solved        more tokens in a trial, and more solved trials, by instance
    break_even            rejections a trial from which the cut takes fewer tokens; None if that was not measured
    p_tokens, p_solved    of the sign-flip test, after Holm's correction over the run
    """

    scenario: str
    model: str
    plan: str
    name: str
    other: str
    tokens: Rises
    solved: Rises
    break_even: BreakEven | None = None
    p_tokens: float | None = None
    p_solved: float | None = None
    family: int = 0

    @property
    def verdict(self) -> str:
        good = _is_told(self.tokens, self.p_tokens, -1) or _is_told(self.solved, self.p_solved, 1)
        bad = _is_told(self.tokens, self.p_tokens, 1) or _is_told(self.solved, self.p_solved, -1)
        if good and bad:
            return "a trade"
        return "pays" if good else "does not pay" if bad else self.tokens.open_verdict(self.family, "cannot be told")


def _is_told(rises_: Rises, p: float | None, sign: int) -> bool:
    contrast = rises_.contrast
    bound = contrast.low if sign > 0 else contrast.high
    return p is not None and p < LEVEL and bound is not None and bound * sign > 0


def payoffs(run: Run) -> list[Payoff]:
    """Return each learned or derived cut beside each other architecture of the run."""
    made = [
        name
        for name in run.names("architecture")
        if (run.config.architecture[name].base if name in run.config.architecture else name) in MADE
    ]
    usable = run.trials[~run.trials["outcome"].isin(UNUSABLE)]
    trials = usable.assign(
        is_solved=(usable["outcome"] == "solved").astype(float), architecture=usable["architecture"].astype(str)
    )
    pairs = ["instance", "repetition", "architecture"]
    compared = [
        Payoff(
            str(scenario),
            str(model),
            str(plan),
            name,
            other,
            tokens=rises(group, "tokens", "architecture", name, other, pairs),
            solved=rises(group, "is_solved", "architecture", name, other, pairs),
            break_even=break_even_by_rejections(group, name, other),
        )
        for (scenario, model, plan), group in trials.groupby(["scenario", "model", "plan"], sort=False, observed=True)
        for name in made
        for other in run.names("architecture")
        if other not in made and {name, other} <= set(group["architecture"])
    ]
    tested = {(place, what): getattr(each, what).p for place, each in enumerate(compared) for what in ("tokens", "solved")}
    adjusted = holm({key: p for key, p in tested.items() if any(getattr(compared[key[0]], key[1]).by_instance.values())})
    return [
        replace(each, p_tokens=adjusted.get((place, "tokens")), p_solved=adjusted.get((place, "solved")), family=len(adjusted))
        for place, each in enumerate(compared)
    ]


def break_even_by_rejections(trials: pd.DataFrame, name: str, other: str) -> BreakEven | None:
    """Return from how many rejections a trial the first takes fewer tokens: by first passes, and by the tokens that were asked
    again for each rejection in trials that had some."""
    known = trials.assign(round=(trials["retry_tokens"] / trials["rejections"]).where(trials["rejections"] > 0))

    def of(arm: str, what: str) -> dict[Pair, float]:
        rows = known[known["architecture"] == arm].dropna(subset=[what])
        cells = zip(rows["instance"], rows["repetition"], rows[what], strict=True)
        return {(str(instance), int(repetition)): float(value) for instance, repetition, value in cells}

    passes, rounds = (in_common(of(name, what), of(other, what)) for what in ("first_pass_tokens", "round"))
    return break_even(passes, rounds)


def _needed(row: Payoff, family: int) -> str | int:
    if not row.verdict.startswith("cannot be") or len(row.tokens.by_instance) < 2:
        return "–"
    return pairs_after_correction(mean_of(list(row.tokens.by_instance.values())), family, LEVEL) or "unknown"


def _payoffs_table(run: Run) -> Table:
    rows = payoffs(run)
    columns = (
        TableColumn[Payoff]("Scenario", lambda row: row.scenario),
        TableColumn[Payoff]("Model", lambda row: model_label(run, row.model)),
        TableColumn[Payoff]("Faults", lambda row: row.plan),
        TableColumn[Payoff]("Cut", lambda row: row.name),
        TableColumn[Payoff]("Beside", lambda row: row.other),
        TableColumn[Payoff]("Instances", lambda row: len(row.tokens.by_instance)),
        TableColumn[Payoff]("More tokens", lambda row: row.tokens.contrast.cell(0)),
        TableColumn[Payoff]("p (Holm)", lambda row: AdjustedP(row.p_tokens)),
        TableColumn[Payoff]("More solved", lambda row: row.solved.contrast.cell()),
        TableColumn[Payoff]("p (Holm) of solved", lambda row: AdjustedP(row.p_solved)),
        TableColumn[Payoff]("Cheaper from rejections a trial", lambda row: rate_in_words(row.break_even)),
        TableColumn[Payoff]("Verdict", lambda row: row.verdict),
        TableColumn[Payoff]("To decide", lambda row: _needed(row, 2 * len(rows))),
    )
    notes = (
        "of a trial, the cut less the other, over the same instances; 95% intervals are of resampled instances",
        "pays: fewer tokens or more solved, told apart, and neither told to be worse; a trade: one of each; told apart: "
        "p < 0.05 by the sign-flip test over instances, after Holm's correction over all rows and both measures",
        "cheaper from: the rejections a trial from which the cut takes fewer tokens (break-even), by first passes without a "
        "rejection and by the tokens asked again for a rejection, over the trials in which both have them",
        "to decide: the instances at which this difference in tokens would be found with a power of 80% at the corrected level",
    )
    return table_of("study-learning-pays", "Does a learned or a derived cut pay?", columns, rows, notes)


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
    """Yield nothing: this study has only tables."""
    del run
    yield from ()
