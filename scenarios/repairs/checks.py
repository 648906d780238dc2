"""The verifier's part of the pack: it applies the edits and runs the visible tests. The hidden ones are not here."""

from __future__ import annotations

from collections.abc import Sequence

from bench.scenario import Check, Context, Finding

from .edits import Unfit, patched, stands_in
from .names import VISIBLE
from .running import ProgramTest, failures, written
from .schemas import Diagnosis, FileFix, Fix, Review


def lines_stand_there(output: Diagnosis, context: Context) -> str | None:
    code = _code(context)
    for number, bug in enumerate(output.bugs):
        if bug.file not in code:
            return f"bugs[{number}].file: there is no file {bug.file}; the files are {', '.join(sorted(code))}"
        if not stands_in(code[bug.file], bug.line):
            return f"bugs[{number}].line does not stand in {bug.file}; copy a whole line"
    return None


def visible_tests_pass(output: Fix, context: Context) -> str | None:
    return first_problem(output, context, written(context.documents[VISIBLE]))


def all_pass(tests: Sequence[ProgramTest]) -> Check:
    """Return the check that a fix passes these tests."""
    return lambda fix, context: first_problem(fix, context, tests)


def first_problem(output: Fix | FileFix, context: Context, tests: Sequence[ProgramTest]) -> str | None:
    """Return the first edit or file that does not fit, or the first of these tests that fails, and how."""
    try:
        edited = patched(_code(context), output)
    except Unfit as unfit:
        return str(unfit)
    return next(filter(None, failures(edited, tests)), None)


def approval_agrees_with_problems(output: Review, _: Context) -> str | None:
    if output.approved is bool(output.problems):
        return f"approved is {str(output.approved).lower()}, and problems has {len(output.problems)}; one of them is wrong"
    return None


def fix_found_wrong(output: Review) -> Finding | None:
    """The signal by which the fix is asked for again."""
    said = "; ".join(" ".join(problem.split()) for problem in output.problems)
    return None if output.approved else Finding("fix", f"the review refused it: {said}")


def _code(context: Context) -> dict[str, str]:
    return {name: text for name, text in context.documents.items() if name.endswith(".py") and name != VISIBLE}
