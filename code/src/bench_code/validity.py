"""Decides which kept results still hold in the present tree, and which do not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bench_code.present import Present
from bench_code.record import Fact
from bench_code.store import ExecutionStore, Kept

BAD = ("failed", "error")
"""The outcomes that are never kept: a test may be flaky, and what failed is what its user looks at."""


@dataclass(frozen=True)
class ValidityDecision:
    """The executions of one layout that are valid in the present tree, and those that are not.

    kept      for the name of each valid execution, its result
    invalid   the names of the executions that must run again, in the order in which they last ran
    stale     the facts that no longer hold
    valid     the names of the executions whose own facts hold; some of them run again for the sake of others
    """

    kept: dict[str, Kept]
    invalid: tuple[str, ...]
    stale: frozenset[Fact]
    valid: frozenset[str]


def decide(store: ExecutionStore, present: Present, layout: str) -> ValidityDecision:
    """Compare the facts of every kept result with the present tree.

    The last result of a test counts, and beside it those of the same tree: a test need not run again after a revert. A failure
    is not kept.

    Args:
        store: The executions and their facts.
        present: The present tree.
        layout: The options under which the executions ran.
    """
    stale = {id_: fact for id_, fact in store.facts().items() if not present.holds(fact)}
    bad = store.executions_on(stale)
    same = store.steps_of(present.tree)
    kept: dict[str, Kept] = {}
    last: dict[str, Kept] = {}
    for execution in reversed(store.executions(layout)):
        latest = last.setdefault(execution.name, execution)
        fails = latest.outcome in BAD and latest.id not in bad
        counts = execution is latest or execution.step in same
        if counts and not fails and execution.id not in bad and execution.outcome not in BAD:
            kept.setdefault(execution.name, execution)
    names = list(reversed(last))
    due = in_order({name for name in names if name not in kept}, names, store.ordered())
    return ValidityDecision(
        {name: each for name, each in kept.items() if name not in due},
        tuple(name for name in names if name in due),
        frozenset(stale.values()),
        frozenset(kept),
    )


def in_order(due: Collection[str], names: Collection[str], ordered: Collection[str]) -> set[str]:
    """Return the tests that must run, with those without which some of them would come out otherwise.

    Args:
        due: The tests that must run for their own sake.
        names: All tests.
        ordered: The tests that leave something in memory for others, and the files in which tests leave it for each other.
    """
    if not due:
        return set()
    run = {*due} | ({*names} & {*ordered})
    files = {name.partition("::")[0] for name in run} & {*ordered}
    return run | {name for name in names if name.partition("::")[0] in files}
