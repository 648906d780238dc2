"""Whether a number of a run can be compared with the paper's at all; what is in the way is told in words."""

from __future__ import annotations

from bench.analysis.frames import Run
from bench.studies.claims.claim import Claim, is_structural
from bench.studies.claims.published import Paper

SIMULATED = "simulated: its replies are made up by the suite, and say nothing about a model"
ON_SIMULATED = "judged on a simulated proposer, which is right: it tells what the runtime does, and nothing of a model"


def obstacle(run: Run, model: str, claim: Claim, paper: Paper) -> str:
    """'' where there is none. A claim is about a model's work, so that none is judged by a simulated one, unless the runtime
    alone decides it; a level is judged by the paper's model at its temperature, asked with its prompts, alone."""
    if run.is_simulated(model):
        return "" if claim.about == "runtime" else SIMULATED
    return "" if is_structural(claim) else _unlike(run, model, claim.scenario, paper)


def _unlike(run: Run, model: str, scenario: str, paper: Paper) -> str:
    """How the model, or what it was asked, differs from the paper's; '' where neither does."""
    differs = []
    settings = run.parameters_of(model)
    if (settings.model, settings.temperature) != (paper.model, paper.temperature):
        differs.append(f"another model than {paper.asked}")
    if run.pack(scenario).asked != paper.prompts.get(scenario):
        differs.append("other prompts than the paper's")
    return " and ".join(differs)
