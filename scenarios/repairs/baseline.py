"""An answer by rule: the most suspicious line is turned round, without understanding what it is for."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Json

from .edits import whole_files

RULES = ((" > ", " >= "), (" < ", " <= "), (" // ", " / "), ("max(", "min("), (" - ", " + "), (" >= ", " > "), (" <= ", " < "))
"""Folk wisdom, the most suspicious first: comparisons miss the equal case, divisions lose what is left, signs are wrong."""


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    """In each file the first line that stands there once and that the first possible rule changes."""
    bugs, edits = [], []
    for file, text in documents.items():
        lines = [line.strip() for line in text.split("\n")]
        code = [line for line in lines if lines.count(line) == 1 and not line.startswith(('"', "def ", "#"))]
        hits = [(line, line.replace(old, new, 1)) for old, new in RULES for line in code if old in line]
        if hits and file.endswith(".py") and "/test_" not in file:
            bugs.append({"file": file, "line": hits[0][0], "cause": "it looks suspicious"})
            edits.append({"file": file, "find": hits[0][0], "replace": hits[0][1]})
    if not edits:
        return {}
    fix = {"edits": edits, **whole_files(documents, edits)}  # each form reads its part
    return {"diagnosis": {"bugs": bugs}, "fix": fix, "review": {"problems": [], "approved": True}}
