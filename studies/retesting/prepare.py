"""The arms of `retesting` repair the repositories of a run when it begins."""

from __future__ import annotations

from typing import Any

from bench.run.experiment.matrix import Matrix

from .patch_loop.arms import ARMS
from .patch_loop.case import case_of
from .patch_loop.loop import run_loop
from .patch_loop.results import DISRUPTIONS, LOOPS, LoopResults


def prepare(matrix: Matrix) -> dict[str, Any]:
    """Run all arms on the matrix's instances of the pack `repairs`, when a run begins."""
    seed = matrix.config.seed
    cases = [case_of(scenario, seed) for scenario in matrix.scenarios.values() if scenario.name.startswith("repairs")]
    results: LoopResults = {
        disruption: {arm.name: [run_loop(case, arm, disruption, seed) for case in cases] for arm in ARMS}
        for disruption in DISRUPTIONS
    }
    return {"retesting": LOOPS.dump_python(results, mode="json")} if cases else {}
