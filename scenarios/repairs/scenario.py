"""Repair a small generated repository in which several lines are wrong. Visible tests verify, hidden ones grade."""

from __future__ import annotations

from bench.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import checks
from .answers import made_of
from .baseline import baseline
from .grader import grade
from .names import DEVELOPMENT, FRESH, MANY
from .patching import FORMS, patching
from .schemas import Diagnosis, Fix, Review

VARIANTS = ("repair", "repair_dev", "repair_many", "patch", "rewrite")
"""Whoever tunes a prompt looks at the variant for development, whose instances no reference run takes. The third is for
simulations that need many instances. The last two ask for nothing but a patch, as edits or as whole files (`patching.py`)."""


def instances(folder: PackFolder) -> tuple[str, ...]:
    return {"repair_dev": DEVELOPMENT, "repair_many": MANY}.get(folder.variant, FRESH)


def scenario(folder: PackFolder, instance: str) -> Scenario:
    if folder.variant in FORMS:
        return patching(folder, instance)
    made = made_of(instance)
    sources = tuple(made.documents)
    subtasks = (
        Subtask(
            name="diagnosis",
            instructions=folder.prompt("diagnosis"),
            reads=sources,
            output=Diagnosis,
            checks=(checks.lines_stand_there,),
        ),
        Subtask(
            name="fix",
            instructions=folder.prompt("fix"),
            reads=(*sources, "diagnosis"),
            output=Fix,
            checks=(checks.visible_tests_pass,),
            checkpoint=True,
        ),
        Subtask(
            name="review",
            instructions=folder.prompt("review"),
            reads=(*sources, "diagnosis", "fix"),
            output=Review,
            checks=(checks.approval_agrees_with_problems,),
            finds=checks.fix_found_wrong,
        ),
    )
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        secrets=made.secrets,
        answer=("fix",),
        documents=made.documents,
        reference=made.reference,
        wrong=made.wrong,
        truth=made.truth,
        made_by=made_of,
    )
