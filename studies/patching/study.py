"""Patching: a model repairs generated repositories patch by patch, in edits of lines or in whole files.

All tests check each patch. If a test fails, a new patch is asked for, with the first failure. For a recorded model the arms of
`retesting` are followed over its patches: which tests each arm would have run again, and what it would have believed. This runs
a model's code, in the sandbox, when the run begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from bench.common.errors import ResultsError
from bench.common.wording import first_violation
from bench.read.analysis.arms import Arm, arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import share_of
from bench.read.render.cells import Estimate, Rate
from bench.read.render.drawing import Picture
from bench.read.render.labels import model_label
from bench.read.render.table import Table, TableColumn, table_of

from ..retesting.patch_loop.columns import COSTS, OUTCOMES, WRONG_BELIEFS, ArmResults, arm_results
from ..retesting.patch_loop.results import FORMS, PATCHED, PatchedCase


def followed(run: Run) -> Mapping[str, Mapping[str, list[PatchedCase]]]:
    """Return the result of each case by form and arm, from the run's manifest; empty if no recording was replayed.

    Raises ResultsError if the manifest is damaged.
    """
    try:
        return PATCHED.validate_python(run.manifest.prepared.get("patching", {}))
    except ValidationError as error:
        raise ResultsError(f"its manifest holds no patches: {first_violation(error).line}; restore it from a copy") from error


# Tables

NOTES = (
    "a case is a repository; means have their 95% interval over cases, shares Wilson's",
    "all tests verify each patch, which the model is told of by the first that fails",
)
ARM_NOTES = (
    "a model wrote the patches; the tests ran in the sandbox. Each arm is followed over the same patches until it believes "
    "that all tests pass. Wrong: it hands in then, while a test fails",
    "regenerate and rerun_everything believe no earlier result. Executions: runs of a test, those of the broken repository "
    "among them. Saved: theirs less this arm's, on the same cases",
    "wrong beliefs: of all kept passes that were believed, those of tests which would have failed. Several stand in one "
    "case, so that no interval is told",
)


def tables(run: Run) -> Iterator[Table]:
    if not FORMS.keys() & set(run.names("scenario")):
        raise ResultsError("needs trials of repairs:patch or repairs:rewrite")
    columns = (
        TableColumn[Arm]("Scenario", lambda arm: arm.condition.scenario),
        TableColumn[Arm]("Model", lambda arm: model_label(run, arm.condition.model)),
        TableColumn[Arm]("Plan", lambda arm: arm.condition.plan),
        TableColumn[Arm]("Solved", lambda arm: Rate(share_of(int((arm.graded["outcome"] == "solved").sum()), len(arm.graded)))),
        TableColumn[Arm]("Patches", lambda arm: Estimate(arm.mean("calls"), 1)),
        TableColumn[Arm]("Tokens", lambda arm: Estimate(arm.mean("tokens"))),
    )
    arms = [arm for by_name in arms_of(run).values() for arm in by_name.values()]
    yield table_of("study-patching", "Patching: edits of lines and whole files", columns, arms, NOTES)
    if kept := followed(run):
        title = "Patching: what each arm runs again and believes after the patches of a recorded model"
        yield table_of("study-patching-arms", title, ARM_COLUMNS, arm_results(kept), ARM_NOTES)


ARM_COLUMNS = (
    TableColumn[ArmResults[PatchedCase]]("Patches as", lambda arm: arm.under),
    TableColumn[ArmResults[PatchedCase]]("Arm", lambda arm: arm.arm),
    *OUTCOMES,
    TableColumn[ArmResults[PatchedCase]](
        "Patches that fit",
        lambda arm: f"{sum(case.fitting for case in arm.cases)} of {sum(case.patches for case in arm.cases)}",
    ),
    *COSTS,
    WRONG_BELIEFS,
)


def pictures(_: Run) -> Iterator[Picture]:
    """Return nothing: twelve cases need only a table."""
    return iter(())
