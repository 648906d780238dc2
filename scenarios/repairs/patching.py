"""The variants that ask for nothing but a patch: `patch` for edits of lines, `rewrite` for whole files.

They are for an agent that patches, looks at its tests, and patches again. So all tests of an instance verify a patch, and it is
rejected with the first that fails. The tests with the shortest calls come first: they are those of single functions.
"""

from __future__ import annotations

from collections.abc import Mapping

from bench.packs import PackFolder
from bench.scenario import Context, Json, Scenario, Subtask, WrongAnswer

from . import checks
from .answers import Made, failure_text, made_of
from .baseline import baseline
from .edits import apply_edits
from .generate import repair
from .grader import grade
from .running import ProgramTest
from .schemas import Edit, FileFix, Fix

FORMS = {"patch": Fix, "rewrite": FileFix}
TOLD = 4
"""Failures that are told in full."""


def patching(folder: PackFolder, instance: str) -> Scenario:
    """Return an instance in which one subtask, `fix`, writes the patch."""
    made, tests = patch_of(instance, folder.variant), suite(instance)

    def all_tests_pass(output: Fix | FileFix, context: Context) -> str | None:
        return checks.first_problem(output, context, tests)

    fix = Subtask(
        name="fix",
        instructions=folder.prompt(folder.variant),
        reads=tuple(made.documents),
        output=FORMS[folder.variant],
        checks=(all_tests_pass,),
        checkpoint=True,
    )
    return folder.scenario(
        (fix,),
        grade=grade,
        baseline=baseline if folder.variant == "patch" else whole_files_by_rule,
        secrets=made.secrets,
        documents=made.documents,
        reference=made.reference,
        wrong=made.wrong,
        truth=made.truth,
        made_by=patch_of,
    )


def suite(instance: str) -> list[ProgramTest]:
    """Return all tests of an instance, in the order in which they run."""
    program = repair(instance)
    return sorted((*program.shown, *program.hidden), key=lambda test: len(test.call))


def patch_of(instance: str, variant: str) -> Made:
    """Make an instance that all tests grade, with its answers in the form of a variant."""
    made, program = made_of(instance), repair(instance)
    tests = suite(instance)
    wrong = [(wrong, in_form(variant, program.files, wrong.outputs)) for wrong in made.wrong]
    return Made(
        documents={"failure.txt": failure_text(program, tests, most=TOLD), **program.files},
        reference=in_form(variant, program.files, made.reference),
        wrong=tuple(WrongAnswer(wrong.name, wrong.why, outputs) for wrong, outputs in wrong),
        truth={**made.truth, "tests": [[test.name, test.call, test.value] for test in tests]},
        secrets=made.secrets,
    )


def in_form(variant: str, files: Mapping[str, str], outputs: Mapping[str, Json]) -> dict[str, Json]:
    """Return the output `fix` alone, in the form of a variant; empty where there is none."""
    if "fix" not in outputs:
        return {}
    edits = outputs["fix"]["edits"]
    if variant == "patch":
        return {"fix": {"edits": edits}}
    changed = apply_edits(files, [Edit(**edit) for edit in edits])
    written = sorted({edit["file"] for edit in edits})
    return {"fix": {"files": [{"file": file, "text": changed[file]} for file in written]}}


def whole_files_by_rule(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """Answer by the pack's rule, in whole files."""
    return in_form("rewrite", documents, baseline(documents))
