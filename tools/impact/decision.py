"""`python -m impact.decision`: the tests of the repository here that must run again, each with a reason, as JSON."""

from __future__ import annotations

import json

from bench.codebase import ExecutionState

REASONS = {
    "changed": "Result changed",
    "volatile": "Never kept",
    "bodies": "A body that ran",
    "skeletons": "A skeleton",
    "reads": "A file or variable",
    "others": "Other",
}
"""Why a test runs, each with its title in a table; the first that holds is a test's. Full runs tell what changed."""
KINDS = {"body": "bodies", "skeleton": "skeletons"}


def main() -> None:
    """Print the tests that are not kept in the present tree."""
    state, told = ExecutionState.open("."), dict[str, str]()
    last = {execution.name: execution for execution in state.executions()}
    for (layout,) in state.store.rows("SELECT DISTINCT layout FROM executions"):
        decision = state.decide(layout)
        for name in decision.invalid:
            kinds = {
                KINDS.get(fact.kind, "reads") for _, _, fact in state.store.facts_of(last[name].id) if fact in decision.stale
            }
            told[name] = "volatile" if last[name].volatile else min(kinds, key=list(REASONS).index, default="others")
    print(json.dumps(told))


if __name__ == "__main__":
    main()
