"""The closed form's answer to a claim, without a model: which of two rounds is dearer, by the sizes of calls alone.

A round of monolithic is its pass; of static, the calls from the struck subtask to the checkpoint; of runtime_structured, the
struck call. So call sizes, shared context, depth and the place of detection decide which is dearer, whatever the model.
"""

from __future__ import annotations

from bench.read.analysis.metrics import FIRST_ROUND
from bench.read.analysis.plans import run_again
from bench.read.claims.claim import Claim, DirectionClaim, RatioClaim
from bench.read.claims.closed_forms import NEAR
from bench.read.claims.evidence import ModelResults


def ratio_by_sizes(source: ModelResults, claim: Claim) -> float | None:
    """Return the closed form's ratio of the two rounds that a claim names: the first divided by the second.

    None if the claim is not about rounds, the run has no fault-free trials that show the sizes of calls, the plan strikes no
    subtask's form, or the ratio is too near to 1 to decide anything.
    """
    if not isinstance(claim, DirectionClaim | RatioClaim) or claim.measure != FIRST_ROUND.tokens.name:
        return None
    prices, again = source.prices(claim.scenario), run_again(source.run, claim.scenario).get(claim.plan)
    if prices is None or again is None:
        return None
    above, below = (prices.round_of(name, again) for name in claim.pair)
    ratio = above / below if above and below else None
    return None if ratio is None or abs(ratio - 1) < NEAR else ratio
