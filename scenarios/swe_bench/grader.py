"""Run the data set's tests on the patched repository: an answer is right if it is "resolved" in SWE-bench's sense."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.common.errors import one_line
from bench.run.sandbox import Limits, run_python
from bench.scenario import Answer, Grade, Json

from . import probe
from .patches import Unfit, patched

LIMITS = Limits(wall_seconds=180.0, cpu_seconds=60)
PROGRAM = Path(probe.__file__).read_text(encoding="utf-8")
PARTS = ("fail_to_pass", "pass_to_pass")


def grade(answer: Answer, truth: Mapping[str, Json]) -> Grade:
    """Grade a patch: correct if every test of FAIL_TO_PASS and PASS_TO_PASS passes. The parts are the shares of each, and the
    score is their mean.

    The tests' files are put in their final form after the patch, whatever it did to them.
    """
    try:
        files = {**patched(truth["files"], answer["patch"].patch), **truth["tests"]}
    except Unfit as unfit:
        return Grade(False, 0.0, dict.fromkeys(PARTS, 0.0), str(unfit))
    tests = [test for part in PARTS for test in truth[part]]
    result = run_python({}, PROGRAM, {"files": files, "tests": tests}, LIMITS)
    seen = result.value if result.ok else {}
    said = {test: _failure(seen, test, result.problem) for test in tests}
    parts = {part: _share(said, truth[part]) for part in PARTS}
    failed = [test for test in tests if said[test]]
    first = f"{len(failed)} of {len(tests)} tests fail: {failed[0]}: {said[failed[0]]}" if failed else "resolved"
    return Grade(not failed, sum(parts.values()) / len(parts), parts, one_line(first, 600))


def _failure(seen: Any, test: str, problem: str) -> str:
    """Return why a test fails, "" if it passes. `seen` comes out of the sandbox, and may be anything."""
    found = seen.get(test) if isinstance(seen, dict) else None
    return found if isinstance(found, str) else problem or "the patched code puts another program in the place of the tests"


def _share(said: Mapping[str, str], tests: list[str]) -> float:
    return [said[test] for test in tests].count("") / len(tests) if tests else 1.0
