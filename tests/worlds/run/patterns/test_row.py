"""A row's transitions: a stale one is rejected, and of two that race one wins."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.worlds.run.patterns.row import DurableRow
from bench.worlds.run.runtime.process import Process, Store


def row() -> DurableRow:
    return DurableRow(Store(Process(lambda _: None), lambda *_: None))


def test_a_stale_transition_is_rejected_and_writes_nothing() -> None:
    stored = row()
    seen = stored.version
    assert stored.swap("pay", "claimed", seen)
    assert not stored.swap("pay", "done", seen)
    assert (stored.state("pay"), stored.version, stored.state("send")) == ("claimed", seen + 1, "open")


@given(st.lists(st.integers(0, 5), max_size=12))
def test_the_version_counts_the_transitions_that_were_written(seen: list[int]) -> None:
    stored = row()
    written = sum(stored.swap("pay", str(version), version) for version in seen)
    assert stored.version == written
