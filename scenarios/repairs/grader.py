"""Makes the edits and runs the hidden tests. The only code that reads them."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Answer, Grade, Json

from .edits import Unfit, patched
from .running import ProgramTest, failures


def grade(answer: Answer, truth: Mapping[str, Json]) -> Grade:
    """Correct if every hidden test passes. The score is the mean of the parts.

    The parts are 1 for each bug whose function does what it must, and the shares of tests that pass: of the whole program, and
    of what was right before.
    """
    tests = [ProgramTest(*test) for test in truth["tests"]]
    parts = {**{f"bug_{number}": 0.0 for number in range(1, truth["bugs"] + 1)}, "whole": 0.0, "kept": 0.0}
    try:
        edited = patched(truth["files"], answer["fix"])
    except Unfit as unfit:
        return Grade(False, 0.0, parts, str(unfit))
    said = dict(zip((test.name for test in tests), failures(edited, tests), strict=True))
    for part in parts:
        of_it = [failure for name, failure in said.items() if name.startswith(f"test_{part}_")]
        passed = of_it.count("") / len(of_it) if of_it else 1.0
        parts[part] = passed if part in ("whole", "kept") else float(passed == 1)
    failed = [failure for failure in said.values() if failure]
    note = f"{len(failed)} of {len(tests)} hidden tests fail: {failed[0]}" if failed else "all hidden tests pass"
    return Grade(not failed, sum(parts.values()) / len(parts), parts, note)
