"""Sensitivity: do the verdicts on directions and ratios stay the same if the same trials are read differently?

No model is asked again: every variation is made from the run's frames and judged by the same rules. It belongs to the claims,
so every report that judges some has it, whatever its config's study.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from bench.read.analysis.frames import Run
from bench.read.claims.claim import is_structural
from bench.read.claims.counted import COUNTED
from bench.read.claims.published import Published
from bench.read.claims.verdicts import Judgement, judge_all
from bench.read.render.labels import model_label
from bench.read.render.table import Table

MOST_LEFT_OUT = 50
"""Most repetitions of a run for which each is left out in turn. In a larger run each weighs less than 2%, and judging all
claims once for each would take an hour with 10,000 trials."""
LEFT_OUT = (
    "without one repetition: each left out in turn; in how many of these runs the verdict is the same, and, where the "
    "interval lay on a side, in how many it still does. Where a p is at its floor, one pair less may be too few"
)
CLAIMED = ("first_round_counted", "first_pass")
"""What the claims on tokens measure."""
ENDINGS = {1: "st", 2: "nd", 3: "rd"}
Verdicts = Mapping[tuple[str, str], Judgement]
"""(model, claim) -> its judgement."""


@dataclass(frozen=True)
class Variation:
    """A different reading of a run's trials. `note` describes it."""

    name: str
    note: str
    run: Run


def variations(run: Run) -> Iterator[Variation]:
    """Return the variations for which the run holds data."""
    repetitions = _repetitions(run)
    half = repetitions[: len(repetitions) // 2]
    if half:
        name = f"First {len(half)} of {len(repetitions)} repetitions"
        yield Variation(name, "the others left out; so few pairs may be too few for any p", _of_repetitions(run, half))
    if run.trials[[f"{what}_usage" for what in CLAIMED]].notna().any(axis=None):
        yield Variation("The provider's tokenizer", "tokens as its usage tells them, in the place of ours", by_usage(run))
    yield Variation(
        "All rounds",
        "all rounds of recovery after a fault, with all their calls",
        by_all_rounds(run),
    )
    for bound in range(run.config.max_attempts - 1, 1, -1):
        caption = f"each trial ends as given up where it made an attempt beyond the {bound}{ENDINGS.get(bound, 'th')}"
        yield Variation(f"At most {bound} attempts", caption, bounded(run, bound))
    for name in run.names("architecture"):
        base = run.config.base(name)
        if base != name and base in run.names("architecture"):
            yield Variation(f"{base} as {name}", f"the variant {name} in the place of {base}", in_place_of(run, base, name))


def _repetitions(run: Run) -> list[int]:
    return sorted(set(run.trials["repetition"].tolist()))


def _of_repetitions(run: Run, kept: Sequence[int]) -> Run:
    """Return the run with only the trials of these repetitions. Judging looks up all other rows by trial."""
    return replace(run, trials=run.trials[run.trials["repetition"].isin(kept)])


def by_usage(run: Run) -> Run:
    usage = {f"{what}_tokens": run.trials[f"{what}_usage"] for what in CLAIMED}
    return replace(run, trials=run.trials.assign(**usage))


def by_all_rounds(run: Run) -> Run:
    """Return the run with another retry: the mean over the recoveries of all faults, effective or masked, of all rounds."""
    recoveries = run.recoveries[run.recoveries["first_tokens"].notna()]
    tokens = recoveries.groupby("trial")["price_tokens"].mean()
    return replace(run, trials=run.trials.assign(**{COUNTED.name: run.trials["trial"].map(tokens)}))


def bounded(run: Run, attempts: int) -> Run:
    """Return the trials as if no subtask had been given more than this number of attempts.

    A trial ends before its first call beyond them. What came later did not happen: a trial lacks its first pass if a first
    attempt came later, and its first round if the fault came later or its recovery would have needed more attempts.
    """
    trials, calls, faults = run.trials, run.calls, run.faults
    ends = calls[calls["attempt"] > attempts].groupby("trial")["call"].min()
    unasked = _after(calls, ends) & calls["caused_by"].isna()
    unstruck = _after(faults, ends) | (faults["attempt"] >= attempts)
    ended = trials["trial"].isin(ends.index)
    changed = {
        "outcome": trials["outcome"].mask(ended, "gave_up"),
        "correct": trials["correct"].mask(ended, False),
        **_missing(trials, "first_pass", calls.loc[unasked, "trial"]),
        **_missing(trials, "first_round", faults.loc[unstruck, "trial"]),
    }
    return replace(run, trials=trials.assign(**changed), replies=run.replies[~_after(run.replies, ends)])


def _after(rows: pd.DataFrame, ends: pd.Series[int]) -> pd.Series[bool]:
    """Return the rows of calls that would not have happened."""
    return (rows["call"] >= rows["trial"].map(ends)).fillna(False).astype(bool)


def _missing(trials: pd.DataFrame, what: str, without: pd.Series[str]) -> dict[str, pd.Series[float]]:
    columns = [name for name in trials.columns if name.startswith(what)]
    return {name: trials[name].mask(trials["trial"].isin(set(without))) for name in columns}


def in_place_of(run: Run, base: str, variant: str) -> Run:
    """Return the run with the variant's trials under the name of its base. The base's own trials are left out."""
    trials = run.trials[run.trials["architecture"] != base]
    return replace(run, trials=trials.assign(architecture=trials["architecture"].replace(variant, base)))


# Tables


def tables(run: Run, published: Published, judgements: Sequence[Judgement]) -> Iterator[Table]:
    """Yield a table if any of these judgements has a verdict."""
    by_claim = _by_claim(judgements)
    if not by_claim:
        return
    varied = {variation: _judged(variation.run, published) for variation in variations(run)}
    repetitions = _repetitions(run)
    without = [
        _judged(_of_repetitions(run, [repetition for repetition in repetitions if repetition != left_out]), published)
        for left_out in (repetitions if len(repetitions) <= MOST_LEFT_OUT else ())
    ]
    rows = tuple(
        (
            judgement.claim.id,
            model_label(run, judgement.model),
            judgement.in_words,
            *(_change(judgement, other.get(key)) for other in varied.values()),
            _without(judgement, [other.get(key) for other in without]),
        )
        for key, judgement in by_claim.items()
    )
    yield Table(
        name="claims_sensitivity",
        title="Sensitivity: the verdict under each variation",
        columns=("Claim", "Model", "Verdict", *(reading.name for reading in varied), "Without one repetition"),
        rows=rows,
        notes=(
            "the same trials, read otherwise, and judged by the same rules; no model was asked anew",
            *(
                f"{reading.name}: {reading.note}; {_same(by_claim, other)} verdicts are the same"
                for reading, other in varied.items()
            ),
            "same side: nothing is concluded, but the interval lies on the same side as it did",
            LEFT_OUT if without else f"without one repetition: not tried, since each of {len(repetitions)} weighs little",
        ),
    )


def _judged(run: Run, published: Published) -> Verdicts:
    return _by_claim(judge_all(run, published, only=is_structural))


def _by_claim(judgements: Sequence[Judgement]) -> dict[tuple[str, str], Judgement]:
    """Return the structural judgements that have a verdict."""
    return {
        (judgement.model, judgement.claim.id): judgement
        for judgement in judgements
        if is_structural(judgement.claim) and judgement.verdict not in ("not comparable", "not measured")
    }


def _same(verdicts: Verdicts, varied: Verdicts) -> str:
    same = sum(key in varied and varied[key].verdict == judgement.verdict for key, judgement in verdicts.items())
    return f"{same} of {len(verdicts)}"


def _without(judgement: Judgement, others: Sequence[Judgement | None]) -> str:
    if not others:
        return "not tried"
    same = sum(other is not None and other.verdict == judgement.verdict for other in others)
    side = sum(other is not None and other.side == judgement.side for other in others)
    return f"{same} of {len(others)}{f', same side {side}' if judgement.side else ''}"


def _change(judgement: Judgement, other: Judgement | None) -> str:
    if other is None:
        return "not measured"
    same_side = other.verdict in ("inconclusive", "cannot be decided") and judgement.side and other.side == judgement.side
    return f"{other.in_words}{', same side' if same_side else ''}"
