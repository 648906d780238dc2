"""Grades the paper-sized variant: the edits in its files, run on its hidden cases, one verdict a bug as in `grader.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bench.run.sandbox import run_python
from bench.scenario import Answer, Grade, Json

from .baseline import RULES
from .edits import Unfit
from .grader import LIMITS, PARTS, verdicts
from .line_edits import CODE, apply_line_edits

DOCUMENTS = Path(__file__).parent / "paper_sized" / "documents"


def grade(answer: Answer, truth: Path) -> Grade:
    """Correct if every hidden case shows every bug fixed; the score is the share of bugs that are."""
    pristine = {name: (DOCUMENTS / name).read_text(encoding="utf-8") for name in CODE}
    edited = apply_line_edits(pristine, answer["fix_generation"].edits)
    if isinstance(edited, Unfit):
        return _grade(dict.fromkeys(PARTS, False), edited.reason)
    cases = json.loads((truth / "cases.json").read_text(encoding="utf-8"))
    probe = (truth / "probe.py").read_text(encoding="utf-8")
    seen = run_python(edited, probe, [case["input"] for case in cases], LIMITS)
    if not seen.ok:
        return _grade(dict.fromkeys(PARTS, False), seen.problem)
    return _grade(verdicts(seen.value, [case["expected"] for case in cases]))


def _grade(found: Mapping[str, bool], note: str = "") -> Grade:
    unfixed = [bug for bug, fixed in found.items() if not fixed]
    parts = {bug: float(fixed) for bug, fixed in found.items()}
    said = note or (f"not fixed: {', '.join(unfixed)}" if unfixed else "all bugs fixed")
    return Grade(correct=not unfixed, score=sum(parts.values()) / len(parts), parts=parts, note=said)


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """The keyword rules of the other variants."""
    lines = [line.strip() for name in CODE for line in documents[name].split("\n")]
    hits = [(line, line.replace(old, new)) for line in lines for at, old, new in RULES if at in line and old in line]
    return {
        "analysis": {"bugs": [{"line": old, "cause": f"must read: {new}"} for old, new in hits]},
        "fix_generation": {"edits": [{"find": old, "replace": new} for old, new in hits]},
        "validation": {"fixed": [True] * len(hits), "approved": True},
        "synthesis": {"summary": "Suspicious lines were replaced."},
    }
