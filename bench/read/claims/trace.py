"""Trace a claim to the trials and calls behind its number, for `bench trace`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.common.errors import ResultsError, nearest
from bench.read.analysis.claim import Claim
from bench.read.analysis.frames import Run
from bench.read.analysis.published import Published, load_published
from bench.read.claims.evidence import EvidenceItem, Missing, ModelResults, evidence, results_by_model
from bench.read.claims.table import verdict_line
from bench.read.claims.verdicts import judge_all
from bench.read.render.labels import model_label

CALL_COLUMNS = ("call", "subtask", "attempt", "try", "cause", "account", "tokens_in", "tokens_out", "verdict")


@dataclass(frozen=True)
class TracedValue:
    """One value behind a claim's number. `trial` is the row of its trial, `calls` the rows of its calls (CALL_COLUMNS)."""

    item: EvidenceItem
    trial: Mapping[str, Any]
    calls: tuple[Mapping[str, Any], ...]


def claim_named(published: Published, name: str) -> Claim:
    """Return the claim of this name. Raises ResultsError, with the nearest name, if there is none."""
    claims = {claim.id: claim for size in (published, *published.sized) for claim in size.claim}
    if name not in claims:
        raise ResultsError(f"no claim has the id '{name}'; {nearest(name, claims)}")
    return claims[name]


def trace(run: Run, claim: Claim) -> Iterator[tuple[str, tuple[TracedValue, ...] | Missing]]:
    """Yield each model of the run with the values of a claim, or with the reason why the run has no values."""
    for source in results_by_model(run):
        items = evidence(source, claim)
        yield source.model, items if isinstance(items, Missing) else tuple(_trace(source, items))


def _trace(source: ModelResults, items: tuple[EvidenceItem, ...]) -> Iterator[TracedValue]:
    """Yield each value with its trial and its calls: the call in which it was measured, or all calls for a value of a whole
    trial (`item.call` is None)."""
    trial_ids = {item.trial for item in items}
    trials = {row["trial"]: row for row in _rows(source.run.trials, trial_ids, list(source.run.trials.columns))}
    calls: dict[str, list[Mapping[str, Any]]] = {}
    for row in _rows(source.run.calls, trial_ids, ["trial", *CALL_COLUMNS]):
        calls.setdefault(row["trial"], []).append(row)
    for item in items:
        rows = (row for row in calls.get(item.trial, ()) if item.call in (None, row["call"]))
        yield TracedValue(item, trials[item.trial], tuple(rows))


def _rows(frame: pd.DataFrame, trials: set[str], columns: list[str]) -> list[dict[Any, Any]]:
    """Return the rows of these trials as dicts from column to value."""
    return frame.loc[frame["trial"].isin(trials), columns].to_dict("records")


def traced_lines(run: Run, name: str) -> Iterator[str]:
    """Yield for each model of the run the verdict on a claim, and each value with its trial and its calls. Raises ResultsError
    for an unknown id."""
    published = load_published()
    claim = claim_named(published, name)
    judgements = {judgement.model: judgement for judgement in judge_all(run, published) if judgement.claim.id == claim.id}
    for model, values in trace(run, claim):
        yield f"{model_label(run, model)}\n{verdict_line(judgements[model])}\n  {judgements[model].reason}; {claim.source}"
        yield f"  what is compared: {claim.kind}, since {claim.why}"
        if not isinstance(values, Missing):
            yield from ("\n".join(_value_lines(value)) for value in values)


def _value_lines(value: TracedValue) -> list[str]:
    """Return a line for a value and its trial, and a line for each of its calls."""
    trial, item = value.trial, value.item
    instance = f" {item.instance}" if item.instance else ""
    arm = f"{trial['scenario']}{instance} {trial['architecture']} {trial['plan']}"
    calls = (
        f"    call {call['call']}  {call['subtask']}  attempt {call['attempt']} try {call['try']}  {call['cause']}  "
        f"{call['account']}  {call['tokens_in']} in, {call['tokens_out']} out  {call['verdict']}"
        for call in value.calls
    )
    trial_line = f"  {item.trial}  {arm} repetition {item.repetition}: {trial['outcome']}  {item.side} = {item.value:g}"
    return [trial_line, *calls]
