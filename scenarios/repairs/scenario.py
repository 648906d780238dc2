"""Repair a small generated repository in which several lines are wrong. Visible tests verify, hidden ones grade."""

from __future__ import annotations

from collections.abc import Sequence

from bench.run.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import checks
from .answers import made_of
from .baseline import baseline
from .grader import grade
from .names import DEVELOPMENT, FRESH, MANY, PATCH_ALONE
from .running import ProgramTest
from .schemas import Diagnosis, FileFix, Fix, Review

VARIANTS = ("repair", "repair_dev", "repair_many", "patch", "rewrite")
"""Whoever tunes a prompt looks at the variant for development, whose instances no reference run takes. The third is for
simulations that need many instances. The last two ask for nothing but a patch, as edits or as whole files."""


def instances(folder: PackFolder) -> tuple[str, ...]:
    return {"repair_dev": DEVELOPMENT, "repair_many": MANY}.get(folder.variant, FRESH)


def scenario(folder: PackFolder, instance: str) -> Scenario:
    made = made_of(instance, folder.variant)
    sources, tests = tuple(made.documents), [ProgramTest(*test) for test in made.truth["tests"]]
    return folder.scenario(
        _patch_alone(folder, sources, tests) if folder.variant in PATCH_ALONE else _repair(folder, sources),
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


def _patch_alone(folder: PackFolder, sources: tuple[str, ...], tests: Sequence[ProgramTest]) -> tuple[Subtask, ...]:
    fix = Subtask(
        name="fix",
        instructions=folder.prompt(folder.variant),
        reads=sources,
        output=Fix if folder.variant == "patch" else FileFix,
        checks=(checks.all_pass(tests),),
        checkpoint=True,
    )
    return (fix,)


def _repair(folder: PackFolder, sources: tuple[str, ...]) -> tuple[Subtask, ...]:
    return (
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
