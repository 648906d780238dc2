"""The signals on which an architecture may branch at runtime: plain code over verified outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.scenario import Finding

from .schemas import Analysis, FixGeneration, Validation

CONFIDENCE = 0.6
"""An analysis that is less sure of itself is too weak to build fixes on."""


def too_weak(output: Analysis) -> str | None:
    if output.needs_fix and not output.bugs:
        return "needs_fix is true, but no bug is listed"
    if output.confidence < CONFIDENCE:
        return f"confidence is {output.confidence}, below {CONFIDENCE}; look again and name the bugs that you are sure of"
    return None


def no_edits_needed(outputs: Mapping[str, Any]) -> FixGeneration | None:
    return None if outputs["analysis"].needs_fix else FixGeneration(edits=[])


def approval_not_needed(outputs: Mapping[str, Any]) -> Validation | None:
    return None if outputs["analysis"].needs_fix else Validation(verdicts=[], problems=[], approved=True)


def fix_found_wrong(output: Validation) -> Finding | None:
    if output.approved:
        return None
    unfixed = [f"bug {verdict.bug} is not fixed" for verdict in output.verdicts if not verdict.fixed]
    problems = [" ".join(problem.split()) for problem in output.problems]  # a reason is one line
    return Finding("fix_generation", f"validation refused the edits: {'; '.join(unfixed + problems)}")
