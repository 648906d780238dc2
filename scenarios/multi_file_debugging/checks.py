"""What code can verify of an output beyond its schema. None of it knows the truth, and none of it runs edited code."""

from __future__ import annotations

from bench.run.sandbox.syntax import unparsable
from bench.scenario import Context

from .edits import Unfit, apply_edits, places
from .schemas import Analysis, FixGeneration, Synthesis, Validation


def lines_are_quoted(output: Analysis, context: Context) -> str | None:
    for number, bug in enumerate(output.bugs):
        if not places(context.documents[bug.file], bug.line_text):
            return f"bugs[{number}].line_text does not occur in {bug.file}; copy a whole line of that file exactly"
    return None


def bugs_agree_with_need(output: Analysis, _: Context) -> str | None:
    if output.bugs and not output.needs_fix:
        return "needs_fix is false, but bugs are listed"
    return None


def edits_fit(output: FixGeneration, context: Context) -> str | None:
    """Only code is edited, so the edits are matched in the Python documents."""
    edited = apply_edits(_code(context), output.edits)
    if isinstance(edited, Unfit):
        return edited.reason
    for file, text in edited.items():
        if problem := unparsable(text):
            return f"{file} is no valid Python after the edits: {problem}"
    return None


def bugs_are_edited(output: FixGeneration, context: Context) -> str | None:
    """At least one edit in each file that has a bug; whether it is the right one is validation's to judge."""
    bugs: Analysis = context.outputs["analysis"]
    untouched = {bug.file for bug in bugs.bugs} - {edit.file for edit in output.edits}
    return f"the analysis names a bug in {min(untouched)}, but no edit changes that file" if untouched else None


def verdicts_cover_bugs(output: Validation, context: Context) -> str | None:
    bugs: Analysis = context.outputs["analysis"]
    expected = list(range(1, len(bugs.bugs) + 1))
    if sorted(verdict.bug for verdict in output.verdicts) != expected:
        return f"verdicts must name each bug of the analysis once, by its number: {expected}"
    return None


def approval_agrees_with_verdicts(output: Validation, _: Context) -> str | None:
    clean = all(verdict.fixed for verdict in output.verdicts) and not output.problems
    if output.approved and not clean:
        return "approved is true, but a bug is not fixed or a problem is listed"
    if clean and not output.approved:
        return "approved is false, but every bug is fixed and no problem is listed"
    return None


def only_edited_files_are_named(output: Synthesis, context: Context) -> str | None:
    fix: FixGeneration = context.outputs["fix_generation"]
    edited = {edit.file for edit in fix.edits}
    foreign = set(output.files_changed) - edited
    if foreign:
        return f"files_changed names {min(foreign)}, which no edit changes"
    if edited and not output.files_changed:
        return "files_changed is empty, but there are edits"
    return None


def _code(context: Context) -> dict[str, str]:
    return {name: text for name, text in context.documents.items() if name.endswith(".py")}
