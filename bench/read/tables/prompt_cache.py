"""Seconds with a cold and a warm prompt cache: a server reads a prompt faster if it has just read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from bench.read.analysis.arms import instances_of
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import PartEstimate, parts_of


@dataclass(frozen=True)
class Reading:
    """The seconds that a server took to read the input and to write the output of some calls of one model.

    tokens_in, tokens_out   by our tokenizer; by the server's count if the reading is of cold or warm tokens
    cached      the input tokens that the server had in its cache; None if it does not tell
    seconds     API time of these calls, without what a fault added
    by_input, by_output     seconds a token; None if there are too few calls
    """

    calls: int
    tokens_in: int
    tokens_out: int
    cached: int | None
    seconds: float
    by_input: PartEstimate | None
    by_output: PartEstimate | None


@dataclass(frozen=True)
class PromptCache:
    """How a model used its prompt cache. Before `first` attempts the server had read another prompt; `later` attempts send
    nearly the same prompt again. If the server reports it, `cold` has the tokens that were not in its cache, and `warm` the
    other tokens."""

    model: str
    first: Reading
    later: Reading
    cold: Reading | None
    warm: Reading | None


def prompt_caches(run: Run) -> Iterator[PromptCache]:
    """Return the readings of each model that answered, without simulated models, whose seconds are declared. Failed calls are
    left out, and so are reused replies, which took no time."""
    calls = run.calls[~run.calls["reused"] & run.calls["failure"].eq("")]
    calls = calls.assign(lasted=calls["seconds"] - calls["delay"])
    for model in dict.fromkeys(calls["by"].tolist()):
        if run.is_simulated(model):
            continue
        of_model = calls[calls["by"].eq(model)]
        first = of_model["attempt"].eq(1)
        with_usage = of_model[of_model["usage_cached"].notna()]
        cold, warm = _by_cache(with_usage) if len(with_usage) else (None, None)
        yield PromptCache(model, _by_attempt(of_model[first]), _by_attempt(of_model[~first]), cold, warm)


def _by_attempt(calls: pd.DataFrame) -> Reading:
    by_input, by_output = _parts(calls, calls["tokens_in"], calls["tokens_out"]) or (None, None)
    with_usage = calls["usage_cached"].dropna()
    cached = int(with_usage.sum()) if len(with_usage) else None
    tokens_in, tokens_out = (int(calls[name].sum()) for name in ("tokens_in", "tokens_out"))
    return Reading(len(calls), tokens_in, tokens_out, cached, float(calls["lasted"].sum()), by_input, by_output)


def _by_cache(calls: pd.DataFrame) -> tuple[Reading, Reading]:
    """Return cold and warm tokens. Both are estimated together, because one call reads some of each."""
    cold, warm, out = calls["usage_in"] - calls["usage_cached"], calls["usage_cached"], calls["usage_out"]
    seconds_by_part = _parts(calls, cold, warm, out) or (None, None, None)
    sums, seconds = [int(tokens.sum()) for tokens in (cold, warm, out)], float(calls["lasted"].sum())
    return (
        Reading(len(calls), sums[0], sums[2], 0, seconds, seconds_by_part[0], seconds_by_part[2]),
        Reading(len(calls), sums[1], sums[2], sums[1], seconds, seconds_by_part[1], seconds_by_part[2]),
    )


def _parts(calls: pd.DataFrame, *amounts: pd.Series[int]) -> tuple[PartEstimate, ...] | None:
    """Return the seconds per token of each amount. Calls of one instance share prompts and form a cluster. With a single
    instance, the calls of one repetition form a cluster."""
    instances = instances_of(calls)
    clusters = instances if len(set(instances)) > 1 else calls["repetition"].tolist()
    rows = list(zip(*(row.astype(float).tolist() for row in amounts), strict=True))
    return parts_of(rows, calls["lasted"].tolist(), clusters)
