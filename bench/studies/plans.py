"""Which fault plans of a run a study can use."""

from __future__ import annotations

from bench.analysis.frames import Run
from bench.errors import ResultsError
from bench.experiment.config import FAULT_FREE
from bench.experiment.plan_entries import FaultEntry
from bench.runtime.faults import EVERY


def single_faults(run: Run) -> dict[str, FaultEntry]:
    """Plan -> its fault, for the plans that have just one, in the config's order."""
    return {plan: found[0] for plan in run.names("plan") if len(found := run.config.faults_of(plan)) == 1}


def failure_rates(run: Run) -> dict[str, float]:
    """Plan -> the chance that a reply's part for a subtask is struck, ascending: 0 for the plan without faults.

    Raises ResultsError where there are not at least two such plans.
    """
    rates = {
        plan: fault.probability
        for plan, fault in single_faults(run).items()
        if fault.probability and fault.point == "output" and fault.subtask == EVERY
    }
    if FAULT_FREE in run.names("plan"):
        rates[FAULT_FREE] = 0.0
    if len(rates) < 2:
        raise ResultsError("needs two plans or more with one output fault each, of a probability, at every subtask")
    return dict(sorted(rates.items(), key=lambda one: one[1]))
