"""Which kept results still hold in the present tree, which do not, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from bench.codebase.present import Present
from bench.codebase.reach import NameChange, Reach
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
    when it last ran is never kept. A changed skeleton invalidates tests that mention a name that changed; see
    `bench.codebase.reach`.
    """
    facts = store.facts()
    stale = {id_: fact for id_, fact in facts.items() if present.value(fact.kind, fact.name) != fact.value}
    reach = StoredReach(store, present, stale.values() if "test" in kinds else ())
    bad = store.executions_on(id_ for id_, fact in stale.items() if fact not in reach.named)
    perhaps = store.executions_on(id_ for id_, fact in stale.items() if fact in reach.named)
    kept: dict[str, Kept] = {}
    last: dict[str, Kept] = {}
    for execution in reversed(store.executions(layout)):
        if execution.kind not in kinds:
            continue
        last.setdefault(execution.name, execution)
        if execution.name in kept or execution.volatile or execution.id in bad or last[execution.name].volatile:
            continue
        if execution.id not in perhaps or (execution.kind == "test" and not reach.touches_execution(execution.id)):
            kept[execution.name] = execution
    last = dict(reversed(last.items()))
    _whole_files(store, kept, last)
    return ValidityDecision(kept, tuple(name for name in last if name not in kept), frozenset(stale.values()))


class StoredReach(Reach):
    """What changed skeletons reach of the executions in a store."""

    def __init__(self, store: ExecutionStore, present: Present, stale: Iterable[Fact]):
        surface = cache(store.surface)
        changes = {
            fact: NameChange(fact.name, surface(fact.value), surface(present.value("skeleton", fact.name)))
            for fact in stale
            if fact.kind == "skeleton"
        }
        self._store, self._record = store, cache(store.record)
        super().__init__(changes, surface, cache(store.mentioned_by))

    def touches_execution(self, execution: int) -> bool:
        """Whether a test that relies on a changed skeleton may come out otherwise now."""
        return self.touches(map(self._record, self._store.record_ids(execution)))


def _whole_files(store: ExecutionStore, kept: dict[str, Kept], last: dict[str, Kept]) -> None:
    """Keep nothing of a file in which an order-dependent test stands and any test must run again."""
    ordered = {name.partition("::")[0] for (name,) in store.rows("SELECT name FROM ordered")}
    broken = {name.partition("::")[0] for name in last if name not in kept} & ordered
    for name in [name for name in kept if name.partition("::")[0] in broken]:
        del kept[name]
