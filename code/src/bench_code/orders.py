"""Finds what tests share without declaring it, by running the same tests in two orders.

A test that fills a cache runs the function behind the cache. The next test does not run it, though it depends on it as well. In
the reverse order the other test runs it. So whatever a test ran or read in only one of the orders is shared: it is added to the
modules that ran it, and thereby to every test that uses these modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench_code.present import Present
from bench_code.record import Execution, Fact, Record
from bench_code.store import ExecutionStore

SUPERSEDED = "was run in one order, and has since been run in both"
BOTH = "both orders"
SHARED = ("body", "file", "status", "listing", "environment")


def compare_orders(store: ExecutionStore, layout: str, executions: Sequence[Execution]) -> Sequence[Execution]:
    """Add to the executions of the reverse order what the same tests depended on in the usual order.

    The store notes each test whose outcome differs as order-dependent.

    Returns:
        The executions, in the usual order.
    """
    before = {execution.name: execution for execution in store.executions(layout, recorded=True)}
    shared: dict[str, set[Fact]] = {}
    ordered: list[str] = []
    merged = []
    for execution in executions:
        usual = before.get(execution.name)
        if usual is None:
            merged.append(execution)
            continue
        usual_facts = {fact for _, _, fact in store.facts_of(usual.id)}
        differing = {fact for fact in usual_facts ^ execution.facts if fact.kind in SHARED}
        modules = {fact.name.partition("::")[0] for fact in differing if fact.kind == "body"}
        for module in modules:
            shared.setdefault(module, set()).update(differing)
        if (usual.outcome, usual.detail) != (execution.outcome, execution.detail):
            ordered.append(execution.name)
        combined = Record(BOTH, execution.name, frozenset(usual_facts | execution.facts))
        volatile = "; ".join(dict.fromkeys(filter(None, (execution.volatile, usual.volatile))))
        kept = replace(execution, outcome=usual.outcome, detail=usual.detail, volatile=volatile)
        merged.append(replace(kept, records=(*execution.records, combined)))
    superseded = [(SUPERSEDED, layout, execution.name) for execution in merged]
    with store.writing():
        store.db.executemany("UPDATE executions SET volatile = ? WHERE layout = ? AND name = ? AND volatile = ''", superseded)
        store.db.executemany("INSERT OR IGNORE INTO ordered VALUES (?)", [(name,) for name in ordered])
    return list(reversed([_with(execution, shared) for execution in merged]))


def with_known_sharing(store: ExecutionStore, present: Present, executions: Sequence[Execution]) -> list[Execution]:
    """Add to executions all that earlier runs in two orders have shown them to share, with its present versions."""
    shared: dict[str, set[Fact]] = {}
    query = (
        "SELECT DISTINCT r.kind, r.name, f.kind, f.name FROM records r JOIN record_facts rf ON rf.record = r.id "
        "JOIN facts f ON f.id = rf.fact WHERE r.kind IN (?, ?)"
    )
    by_name: dict[str, set[Fact]] = {}
    for record, name, kind, what in store.rows(query, "shared", BOTH):
        (shared if record == "shared" else by_name).setdefault(name, set()).add(Fact(kind, what, present.value(kind, what)))
    known = [
        replace(execution, records=(*execution.records, Record(BOTH, execution.name, frozenset(by_name[execution.name]))))
        if execution.name in by_name
        else execution
        for execution in executions
    ]
    return [_with(execution, shared) for execution in known] if shared else known


def _with(execution: Execution, shared: dict[str, set[Fact]]) -> Execution:
    modules = {fact.name for fact in execution.facts if fact.kind == "skeleton"}
    extra = tuple(Record("shared", module, frozenset(shared[module])) for module in sorted(modules & set(shared)))
    return replace(execution, records=(*execution.records, *extra))
