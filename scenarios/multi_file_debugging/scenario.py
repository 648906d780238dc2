"""Multi-file debugging: three bugs in two files, each hidden behind the one before. See README.md."""

from __future__ import annotations

from bench.run.packs import PackFolder
from bench.scenario import Scenario, Subtask

from . import branching, checks
from .baseline import baseline
from .grader import grade
from .schemas import Analysis, FixGeneration, Synthesis, Validation

VARIANTS = ("paper",)
SOURCES = ("pipeline.py", "validator.py", "failure.txt")
SECRETS = (
    "totals.get(day, 0) + amount",
    "totals[first:today + 1]",
    "totals[first : today + 1]",
    'int(settings["limit"])',
    "int(limit)",
)


def scenario(folder: PackFolder) -> Scenario:
    subtasks = (
        Subtask(
            "analysis",
            folder.prompt("analysis"),
            reads=SOURCES,
            output=Analysis,
            checks=(checks.lines_are_quoted, checks.bugs_agree_with_need),
            sufficient=branching.too_weak,
        ),
        Subtask(
            "fix_generation",
            folder.prompt("fix_generation"),
            reads=("analysis",),
            output=FixGeneration,
            checks=(checks.edits_fit, checks.bugs_are_edited),
            skip=branching.no_edits_needed,
        ),
        Subtask(
            "validation",
            folder.prompt("validation"),
            reads=("analysis", "fix_generation", *SOURCES),
            output=Validation,
            checks=(checks.verdicts_cover_bugs, checks.approval_agrees_with_verdicts),
            skip=branching.approval_not_needed,
            finds=branching.fix_found_wrong,
            checkpoint=True,
        ),
        Subtask(
            "synthesis",
            folder.prompt("synthesis"),
            reads=("analysis", "fix_generation", "validation"),
            output=Synthesis,
            checks=(checks.only_edited_files_are_named,),
        ),
    )
    return folder.scenario(subtasks, grade=grade, baseline=baseline, secrets=SECRETS)
