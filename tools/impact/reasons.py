"""Why tests run again after an edit: their results changed, or what they depend on did though they came out the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from impact.decision import REASONS
from impact.mutants import Mutant
from impact.trial import Suite


def why_run(suite: Suite, edits: Sequence[Mutant]) -> dict[str, str]:
    """How many tests run for each reason, over edits of a suite.

    Returns:
        The package, the tests and those that run, and a number for each reason, as texts.
    """
    tests, counted = suite.tests(), Counter[str]()
    for edit in edits:
        changed = suite.changed(edit)
        counted.update("changed" if test in changed else why for test, why in suite.decision(edit).items() if test in tests)
    counts = {"tests": len(tests) * len(edits), "run": sum(counted.values())} | {key: counted[key] for key in REASONS}
    return {"package": suite.package.release} | {key: str(count) for key, count in counts.items()}
