"""Applies the edits to pristine files and runs hidden cases on them: one verdict per bug.

The expected values stay here. The sandboxed process is given code and inputs, and what it returns is compared outside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.run.sandbox import Limits, run_python
from bench.scenario import Answer, Grade, Json

from .edits import Unfit, apply_edits
from .schemas import Edit, FixGeneration

PARTS = {"bug_1": "totals", "bug_2": "rolling", "bug_3": "report"}
"""Which observation of a case shows that a bug is fixed. Each contains the one before, so verdicts fall in causal order."""

LIMITS = Limits(wall_seconds=15.0, cpu_seconds=1)
"""CPU time ends a loop; the wall is far off, lest a busy machine make a right answer wrong."""
DOCUMENTS = Path(__file__).parent / "documents"


def grade(answer: Answer, truth: Path, fixed: Sequence[Edit] = ()) -> Grade:
    """Correct if every hidden case shows every bug fixed; the score is the share of bugs that are.

    fixed   edits that were made before: a variant with fewer bugs has none of the last ones
    """
    fix = FixGeneration.model_validate(answer["fix_generation"], from_attributes=True)
    parts = parts_of(len(PARTS) - len(fixed))
    edited = apply_edits(_sources(fixed), fix.edits)
    if isinstance(edited, Unfit):
        return _grade(dict.fromkeys(parts, False), edited.reason)
    cases = json.loads((truth / "cases.json").read_text(encoding="utf-8"))
    probe = (truth / "probe.py").read_text(encoding="utf-8")
    seen = run_python(edited, probe, [case["input"] for case in cases], LIMITS)
    if not seen.ok:
        return _grade(dict.fromkeys(parts, False), seen.problem)
    return _grade(verdicts(seen.value, [case["expected"] for case in cases], parts))


def _sources(fixed: Sequence[Edit]) -> dict[str, str]:
    pristine = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS.glob("*.py")}
    sources = apply_edits(pristine, fixed)
    if isinstance(sources, Unfit):
        raise ValueError(sources.reason)
    return sources


def parts_of(bugs: int) -> dict[str, str]:
    """Those of the first bugs. The last of them is fixed if the whole report is right: then nothing else was broken."""
    return {**dict(list(PARTS.items())[:bugs]), f"bug_{bugs}": "report"}


def verdicts(seen: Json, expected: list[Mapping[str, Json]], parts: Mapping[str, str] = PARTS) -> dict[str, bool]:
    """Per bug, whether every case was observed as expected. `seen` comes from untrusted code and may be anything."""
    if not isinstance(seen, list) or len(seen) != len(expected):
        return dict.fromkeys(parts, False)
    pairs = [(one if isinstance(one, dict) else {}, wanted) for one, wanted in zip(seen, expected, strict=True)]
    return {bug: all(same(one.get(observed), wanted[observed]) for one, wanted in pairs) for bug, observed in parts.items()}


def same(one: Any, other: Any) -> bool:
    """Equality of two JSON values in which 1, 1.0 and true differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _grade(verdicts: Mapping[str, bool], note: str = "") -> Grade:
    open_bugs = [bug for bug, fixed in verdicts.items() if not fixed]
    parts = {bug: float(fixed) for bug, fixed in verdicts.items()}
    said = note or (f"not fixed: {', '.join(open_bugs)}" if open_bugs else "all bugs fixed")
    return Grade(correct=not open_bugs, score=sum(parts.values()) / len(parts), parts=parts, note=said)
