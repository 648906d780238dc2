"""The paper's task at the paper's size: a smaller program with the same three kinds of bugs, and shorter forms of answer.

A monolithic call is some 700 tokens in all, as in the paper's Table 1; in the pack's first variant it is 2.5 times as long.
Whether a round of `static` is dearer than one of `monolithic` follows from such sizes. See README.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from bench.run.packs import PackFolder
from bench.run.sandbox.syntax import unparsable
from bench.scenario import Context, Finding, Output, Scenario, Subtask

from .edits import Unfit, places
from .grader_paper_sized import baseline, grade
from .line_edits import CODE, LineEdit, apply_line_edits
from .schemas import Part, Text

VARIANTS = ("paper_sized",)
SOURCES = (*CODE, "failure.txt")
SECRETS = ("totals[day] += amount", "i + 1", "int(limit)")


class Bug(Part):
    line: Text
    cause: Text


class Analysis(Output):
    bugs: list[Bug]


class Fix(Output):
    edits: list[LineEdit]


class Validation(Output):
    fixed: Annotated[list[bool], Field(description="by bug")]
    approved: bool


class Synthesis(Output):
    summary: Text


def lines_are_quoted(output: Analysis, context: Context) -> str | None:
    for number, bug in enumerate(output.bugs):
        if not any(places(context.documents[name], bug.line) for name in CODE):
            return f"bugs[{number}].line stands in no file; copy a whole line exactly"
    return None


def edits_fit(output: Fix, context: Context) -> str | None:
    edited = apply_line_edits(context.documents, output.edits)
    if isinstance(edited, Unfit):
        return edited.reason
    for file, text in edited.items():
        if problem := unparsable(text):
            return f"{file} is no valid Python after the edits: {problem}"
    return None


def bugs_are_edited(output: Fix, context: Context) -> str | None:
    lines = {bug.line.strip() for bug in context.outputs["analysis"].bugs}
    untouched = lines - {edit.find.strip() for edit in output.edits}
    return f"no edit replaces the line that the analysis names: {min(untouched)}" if untouched else None


def verdicts_cover_bugs(output: Validation, context: Context) -> str | None:
    expected = len(context.outputs["analysis"].bugs)
    if len(output.fixed) != expected:
        return f"fixed has {len(output.fixed)} values; give one for each of the {expected} bugs of the analysis"
    return None


def approval_agrees_with_verdicts(output: Validation, _: Context) -> str | None:
    if output.approved != all(output.fixed):
        return f"approved is {str(output.approved).lower()}, but the verdicts say otherwise"
    return None


def too_weak(output: Analysis) -> str | None:
    return None if output.bugs else "no bug is listed, but the program fails"


def fix_found_wrong(output: Validation) -> Finding | None:
    unfixed = [f"bug {number} is not fixed" for number, fixed in enumerate(output.fixed, 1) if not fixed]
    return Finding("fix_generation", f"validation refused the edits: {'; '.join(unfixed)}") if unfixed else None


def scenario(folder: PackFolder) -> Scenario:
    own = PackFolder(folder.path / folder.variant, folder.variant)
    made = own.scenario(_subtasks(own), grade=grade, baseline=baseline, secrets=SECRETS)
    return replace(made, task=replace(made.task, name=folder.name))


def _subtasks(folder: PackFolder) -> tuple[Subtask, ...]:
    asked: tuple[tuple[str, tuple[str, ...], type[Output], dict[str, Any]], ...] = (
        ("analysis", SOURCES, Analysis, {"checks": (lines_are_quoted,), "sufficient": too_weak}),
        ("fix_generation", ("analysis",), Fix, {"checks": (edits_fit, bugs_are_edited)}),
        (
            "validation",
            ("analysis", "fix_generation", *SOURCES),
            Validation,
            {
                "checks": (verdicts_cover_bugs, approval_agrees_with_verdicts),
                "finds": fix_found_wrong,
                "checkpoint": True,
            },
        ),
        ("synthesis", ("analysis", "fix_generation", "validation"), Synthesis, {}),
    )
    return tuple(Subtask(name, folder.prompt(name), reads, output, **more) for name, reads, output, more in asked)
