"""Instances in the form of SWE-bench's data set: write the patch that resolves an issue. See README.md."""

from __future__ import annotations

from bench.run.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import checks
from .baseline import baseline
from .generate import made_of
from .grader import grade
from .place import instances_in
from .schemas import Diagnosis, Patch


def instances(folder: PackFolder) -> tuple[str, ...]:
    return tuple(instances_in(folder.path))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    made = made_of(*instances_in(folder.path)[instance])
    sources = tuple(made.documents)
    subtasks = (
        Subtask(
            name="diagnosis",
            instructions=folder.prompt("diagnosis"),
            reads=sources,
            output=Diagnosis,
            checks=(checks.file_is_shown,),
            checkpoint=True,
        ),
        Subtask(
            name="patch",
            instructions=folder.prompt("patch"),
            reads=(*sources, "diagnosis"),
            output=Patch,
            checks=(checks.patch_applies,),
        ),
    )
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        answer=("patch",),
        documents=made.documents,
        reference=made.reference,
        wrong=made.wrong,
        truth=made.truth,
        made_by=made_of,
    )
