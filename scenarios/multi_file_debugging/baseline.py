"""An answer by keyword rules alone: what the pack gives away to someone who does not understand the code."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Json

# Folk wisdom, not knowledge of these files: totals are added up, loops run one too far, comparisons miss the equal case.
RULES = (("total", " * ", " + "), ("range(", "))", ") - 1)"), (" if ", " > ", " >= "))


def baseline(documents: Mapping[str, str]) -> Mapping[str, Json]:
    lines = [(file, line) for file in ("pipeline.py", "validator.py") for line in documents[file].split("\n")]
    hits = [(f, line, line.replace(old, new)) for f, line in lines for at, old, new in RULES if at in line and old in line]
    bugs = [{"file": f, "line_text": old, "cause": f"must read: {new.strip()}"} for f, old, new in hits]
    verdicts = [{"bug": number, "fixed": True} for number in range(1, len(hits) + 1)]
    said = "Suspicious lines were replaced."
    return {
        "analysis": {"needs_fix": bool(hits), "bugs": bugs, "confidence": 0.6},
        "fix_generation": {"edits": [{"file": f, "find": old, "replace": new} for f, old, new in hits]},
        "validation": {"verdicts": verdicts, "problems": [], "approved": True},
        "synthesis": {"summary": said, "root_cause": said, "files_changed": sorted({f for f, _, _ in hits})},
    }
