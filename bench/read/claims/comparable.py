"""Whether a number of a run can be compared with the paper's number, and the reason if it cannot."""

from __future__ import annotations

from bench.read.analysis.frames import Run
from bench.read.claims.claim import Claim, is_structural
from bench.read.claims.published import Paper

SIMULATED = "simulated: its replies are made up by the suite, and say nothing about a model"
ON_SIMULATED = "judged on a simulated proposer, which is right: it tells what the runtime does, and nothing of a model"


def obstacle(run: Run, model: str, claim: Claim, paper: Paper) -> str:
    """Return why this model cannot judge a claim; "" if it can.

    A simulated model judges no claim about a model's work, only claims that the runtime alone decides. A level is judged only
    with the paper's model at its temperature and its prompts.
    """
    if run.is_simulated(model):
        return "" if claim.about == "runtime" else SIMULATED
    return "" if is_structural(claim) else _unlike(run, model, claim.scenario, paper)


def _unlike(run: Run, model: str, scenario: str, paper: Paper) -> str:
    """Return how the model or its prompts differ from the paper's; "" if they do not."""
    differs = []
    settings = run.parameters_of(model)
    if (settings.model, settings.temperature) != (paper.model, paper.temperature):
        differs.append(f"another model than {paper.asked}")
    if run.pack(scenario).asked != paper.prompts.get(scenario):
        differs.append("other prompts than the paper's")
    return " and ".join(differs)
