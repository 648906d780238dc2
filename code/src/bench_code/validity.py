"""Decides which kept results still hold in the present tree, and which do not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bench_code.present import Present
from bench_code.store import ExecutionStore, Kept, Leftover

BAD = ("failed", "error")
"""The outcomes that are never kept: a test may be flaky, and what failed is what its user looks at."""


@dataclass(frozen=True)
class ValidityDecision:
    """The executions of one layout that are valid in the present tree, and those that are not.

    kept      for the name of each valid execution, its result
    invalid   the names of the executions that must run again, in the order in which they first ran
    valid     for the name of each execution whose own facts hold, its result; some of them run again for the sake of others
    """

    kept: dict[str, Kept]
    invalid: tuple[str, ...]
    valid: dict[str, Kept]


def decide(store: ExecutionStore, present: Present, layout: str) -> ValidityDecision:
    """Compare the facts of every kept result with the present tree.

    The last result of a test counts, and beside it those of the same tree: a test need not run again after a revert. A failure
    is not kept.

    Args:
        store: The executions and their facts.
        present: The present tree.
        layout: The options under which the executions ran.
    """
    bad = store.executions_on(id_ for id_, fact in store.facts().items() if not present.holds(fact))
    same = store.steps_of(present.tree)
    valid: dict[str, Kept] = {}
    last: dict[str, Kept] = {}
    executions = store.executions(layout)
    for execution in reversed(executions):
        latest = last.setdefault(execution.name, execution)
        fails = latest.outcome in BAD and latest.id not in bad
        counts = execution is latest or execution.step in same
        if counts and not fails and execution.id not in bad and execution.outcome not in BAD:
            valid.setdefault(execution.name, execution)
    names = list(dict.fromkeys(execution.name for execution in executions))
    due = in_order(last.keys() - valid.keys(), names, store.leftovers())
    return ValidityDecision(
        {name: each for name, each in valid.items() if name not in due}, tuple(name for name in names if name in due), valid
    )


def in_order(due: Collection[str], names: Sequence[str], leftovers: Mapping[str, Leftover]) -> set[str]:
    """Return the tests that must run, with those after which they would come out otherwise if these did not run.

    Args:
        due: The tests that must run for their own sake.
        names: All tests, in their order.
        leftovers: What tests left for others when they last ran.
    """
    run, files = {*due}, set[str]()
    for name in names:
        file = name.partition("::")[0]
        run |= {name} if files & {"", file} else set()
        files |= {leftovers[name].file} if name in run and name in leftovers and leftovers[name].is_untold else set()
    files.clear()
    for name in reversed(names):
        run |= {name} if name in leftovers and leftovers[name].file in files else set()
        files |= {"", name.partition("::")[0]} if name in run else set()
    return run
