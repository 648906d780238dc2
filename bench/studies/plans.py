"""What a run's config says about its fault plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.analysis.frames import Run
from bench.errors import ResultsError
from bench.experiment.config import FAULT_FREE
from bench.runtime.faults import EVERY

FaultTable = Mapping[str, Any]
"""A fault as the config has it: point, effect, subtask, attempts, probability."""


def faults_of(run: Run, plan: str) -> list[FaultTable]:
    found: list[FaultTable] = run.manifest["config"].get("plan", {}).get(plan, {}).get("faults", [])
    return found


def single_faults(run: Run) -> dict[str, FaultTable]:
    """Plan -> its fault, for the plans that have just one, in the config's order."""
    return {plan: found[0] for plan in run.names("fault") if len(found := faults_of(run, plan)) == 1}


def failure_rates(run: Run) -> dict[str, float]:
    """Plan -> the chance that a reply's part for a subtask is struck, ascending: 0 for the plan without faults.

    Raises ResultsError where there are not at least two such plans.
    """
    rates = {
        plan: float(fault["probability"])
        for plan, fault in single_faults(run).items()
        if fault["probability"] and fault["point"] == "output" and fault["subtask"] == EVERY
    }
    if FAULT_FREE in run.names("fault"):
        rates[FAULT_FREE] = 0.0
    if len(rates) < 2:
        raise ResultsError("needs two plans or more with one output fault each, of a probability, at every subtask")
    return dict(sorted(rates.items(), key=lambda one: one[1]))
