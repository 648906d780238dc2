"""The metrics of retry tokens as the paper counts them: of the first round after a fault only the calls for some subtasks.

`published.toml` lists these subtasks by table and architecture. A trial has a value if the paper has a table for its scenario
and its fault plan, and a column for its architecture, or if its architecture makes one call for the whole task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from bench.read.analysis.claim import RateClaim
from bench.read.analysis.metrics import FIRST_ROUND, Metric
from bench.read.analysis.published import Published, load_published
from bench.read.analysis.trial import MEASURED, TrialReading

AS_PAPER_COUNTS, WHOLE_ROUND = "as the paper counts", "the whole round"
TITLE = "First round as the paper counts it, tokens"


@cache  # two metrics of every trial ask
def counted_calls(scenario: str, plan: str) -> Mapping[str, Sequence[str]]:
    """Return architecture -> the subtasks whose calls the paper counts in a retry; an architecture that is left out has the
    whole round. Empty if the paper has no table for the scenario and the plan."""
    table = load_published().table_of(scenario, plan)
    return table.counted if table else {}


def _value(trial: TrialReading, measure: str) -> float | None:
    """Return a measure of the counted calls of a trial's first round; None if the paper counts none for this trial."""
    record, published = trial.record, load_published()
    counted = counted_calls(record.scenario, record.plan)
    if not counted or record.architecture not in (*published.columns, *published.monoliths):
        return None
    return trial.first_round(MEASURED[measure], counted.get(record.architecture))


COUNTED = Metric("first_round_counted_tokens", "float64", lambda trial: _value(trial, "tokens"), TITLE, measure="first_round")
METRICS = (COUNTED, Metric("first_round_counted_usage", "float64", lambda trial: _value(trial, "usage"), measure="first_round"))


def over_whole_rounds(published: Published) -> Published:
    """Return the claims with the tokens of a retry measured over its whole round, instead of as the paper counts."""
    whole_round = {"measure": FIRST_ROUND.tokens.name}
    claims = (
        claim.model_copy(update=whole_round) if not isinstance(claim, RateClaim) and claim.measure == COUNTED.name else claim
        for claim in published.claim
    )
    return published.model_copy(update={"claim": tuple(claims)})
