"""Which kept results still hold in the present tree, which do not, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.codebase.present import Present
from bench.codebase.record import Fact
from bench.codebase.store import ExecutionStore, Kept


@dataclass(frozen=True)
class ValidityDecision:
    """What is valid now, of all executions of one layout.

    kept      for each execution's name, the result that holds
    invalid   the names of those that must run again, in the order in which they last ran
    stale     the facts that hold no more
    """

    kept: dict[str, Kept]
    invalid: tuple[str, ...]
    stale: frozenset[Fact] = field(default_factory=frozenset)


def decide(store: ExecutionStore, present: Present, layout: str, kinds: Sequence[str] = ("test",)) -> ValidityDecision:
    """Judge every kept result by the present values of all that it relied on.

    A result of an older version counts as well: what a revert brings back need not run again. An execution that was volatile
    when it last ran is never kept.
    """
    facts = store.facts()
    stale = {id_: fact for id_, fact in facts.items() if present.value(fact.kind, fact.name) != fact.value}
    bad = store.executions_on(stale)
    kept: dict[str, Kept] = {}
    last: dict[str, Kept] = {}
    for execution in store.executions(layout):
        if execution.kind not in kinds:
            continue
        last.pop(execution.name, None)
        last[execution.name] = execution
        if execution.id not in bad and not execution.volatile:
            kept[execution.name] = execution
    for name, execution in last.items():
        if execution.volatile:
            kept.pop(name, None)
    _whole_files(store, kept, last)
    return ValidityDecision(kept, tuple(name for name in last if name not in kept), frozenset(stale.values()))


def _whole_files(store: ExecutionStore, kept: dict[str, Kept], last: dict[str, Kept]) -> None:
    """Keep nothing of a file in which an order-dependent test stands and any test must run again."""
    ordered = {name.partition("::")[0] for (name,) in store.rows("SELECT name FROM ordered")}
    broken = {name.partition("::")[0] for name in last if name not in kept} & ordered
    for name in [name for name in kept if name.partition("::")[0] in broken]:
        del kept[name]
