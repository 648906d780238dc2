"""Decides which kept results still hold in the present tree, and which do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from bench_code.effects import may_load, same_effects
from bench_code.present import Present
from bench_code.reach import NameChange, Reach
from bench_code.record import ABSENT, Fact
from bench_code.store import ExecutionStore, Kept


@dataclass(frozen=True)
class ValidityDecision:
    """The executions of one layout that are valid in the present tree, and those that are not.

    kept      for the name of each valid execution, its result
    invalid   the names of the executions that must run again, in the order in which they last ran
    stale     the facts that no longer hold
    steady    the last results of those that are never kept, where all that they depend on holds: recorded anew, they would be
              found to depend on the same
    """

    kept: dict[str, Kept]
    invalid: tuple[str, ...]
    stale: frozenset[Fact] = field(default_factory=frozenset)
    steady: dict[str, Kept] = field(default_factory=dict)


def decide(store: ExecutionStore, present: Present, layout: str, kinds: Sequence[str] = ("test",)) -> ValidityDecision:
    """Compare the facts of every kept result with the present tree.

    A result of an older version counts as well, so a test need not run again after a revert. An execution that was volatile
    when it last ran is never kept. A changed skeleton invalidates only the tests that mention a changed name, if
    `bench_code.reach` can tell the names.

    Args:
        store: The executions and their facts.
        present: The present tree.
        layout: The options under which the executions ran.
        kinds: The kinds of executions that are judged.
    """
    facts = store.facts()
    stale = {id_: fact for id_, fact in facts.items() if present.value(fact.kind, fact.name) != fact.value}
    harmless = same_effects_in(store, present, facts.values(), stale.values())
    stale = {id_: fact for id_, fact in stale.items() if fact not in harmless}
    reach = StoredReach(store, present, stale.values() if "test" in kinds else ())
    bad = store.executions_on(id_ for id_, fact in stale.items() if fact not in reach.named)
    perhaps = store.executions_on(id_ for id_, fact in stale.items() if fact in reach.named)
    kept: dict[str, Kept] = {}
    steady: dict[str, Kept] = {}
    last: dict[str, Kept] = {}
    for execution in reversed(store.executions(layout, recorded=True)):
        if execution.kind not in kinds:
            continue
        latest = last.setdefault(execution.name, execution)
        if execution.name in kept or execution.id in bad or (latest.volatile and latest is not execution):
            continue
        if execution.id not in perhaps or (execution.kind == "test" and not reach.touches_execution(execution.id)):
            (steady if execution.volatile else kept)[execution.name] = execution
    last = dict(reversed(last.items()))
    _whole_files(store, kept, last)
    return ValidityDecision(kept, tuple(name for name in last if name not in kept), frozenset(stale.values()), steady)


def same_effects_in(store: ExecutionStore, present: Present, facts: Iterable[Fact], stale: Iterable[Fact]) -> set[Fact]:
    """Return the facts of changed modules that do while they are imported what they did before, beyond binding names."""
    changed = [fact for fact in stale if fact.kind == "effects"]
    if not changed:
        return set()
    loaded = {fact.name for fact in facts if fact.kind == "effects" and fact.value != ABSENT}
    tree, ran = present.python_files(), store.ran_in_imports()
    return {
        fact
        for fact in changed
        if same_effects(
            store.surface(fact.value),
            store.surface(present.value("skeleton", fact.name)),
            lambda statement: may_load(statement, loaded, tree),
            ran.get(fact.name, ()),
        )
    }


class StoredReach(Reach):
    """Decides which executions of a store a change of skeletons reaches."""

    def __init__(self, store: ExecutionStore, present: Present, stale: Iterable[Fact]):
        surface = cache(store.surface)
        changes = {
            fact: NameChange(fact.name, surface(fact.value), surface(present.value("skeleton", fact.name)))
            for fact in stale
            if fact.kind == "skeleton"
        }
        self._store, self._record = store, cache(store.record)
        super().__init__(changes, surface, cache(store.mentioned_by))
        self.named |= {fact for fact in stale if fact.kind == "drawn"}

    def touches_execution(self, execution: int) -> bool:
        """Return whether a test that relies on a changed skeleton may have another result now."""
        return self.touches(map(self._record, self._store.record_ids(execution)))


def _whole_files(store: ExecutionStore, kept: dict[str, Kept], last: dict[str, Kept]) -> None:
    """Keep no result of a file that has an order-dependent test and a test that must run again."""
    ordered = {name.partition("::")[0] for (name,) in store.rows("SELECT name FROM ordered")}
    broken = {name.partition("::")[0] for name in last if name not in kept} & ordered
    for name in [name for name in kept if name.partition("::")[0] in broken]:
        del kept[name]
