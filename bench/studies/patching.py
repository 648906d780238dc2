"""Patching: a model repairs generated repositories patch by patch, in edits of lines or in whole files.

Each patch is held against all tests, and a patch that fails one is asked for again with its first failure.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.arms import arms_of
from bench.analysis.frames import Run
from bench.analysis.statistics import share_of
from bench.errors import ResultsError
from bench.render.cells import Estimate, Rate
from bench.render.drawing import Picture
from bench.render.labels import model_label
from bench.render.table import Table

NOTES = ("a case is a repository; means have their 95% interval over cases, shares Wilson's",)


def tables(run: Run) -> Iterator[Table]:
    if not {"repairs:patch", "repairs:rewrite"} & set(run.names("scenario")):
        raise ResultsError("needs trials of repairs:patch or repairs:rewrite")
    rows = [
        (
            *(condition.scenario, model_label(run, condition.model), condition.plan),
            Rate(share_of(int((arm.graded["outcome"] == "solved").sum()), len(arm.graded))),
            Estimate(arm.mean("calls"), 1),
            Estimate(arm.mean("tokens")),
        )
        for condition, arms in arms_of(run).items()
        for arm in arms.values()
    ]
    yield Table(
        name="study-patching",
        title="Patching: edits of lines and whole files",
        columns=("Scenario", "Model", "Plan", "Solved", "Patches", "Tokens"),
        rows=tuple(rows),
        notes=NOTES,
    )


def pictures(_: Run) -> Iterator[Picture]:
    """None."""
    return iter(())
