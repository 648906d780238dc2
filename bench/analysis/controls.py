"""Trials beside their controls: the same trial without faults."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from bench.analysis.ledger import LedgerEntry, book
from bench.experiment.config import FAULT_FREE
from bench.experiment.record import TrialRecord, latest

ConditionOfTrial = tuple[str, str, str, str, int]


def with_controls(
    read: Callable[[], Iterable[TrialRecord]], wanted: Container[str]
) -> Iterator[tuple[TrialRecord, tuple[LedgerEntry, ...]]]:
    """Each of these trials, by id, with the calls of its control; left out where it has none. `read` gives all trials of the
    run; it is called twice, and not at all where none is wanted."""
    if not wanted:
        return
    struck = latest(record for record in read() if record.id in wanted)
    places = {_place(record) for record in struck}
    fault_free = (record for record in read() if record.plan == FAULT_FREE and _place(record) in places)
    controls = {_place(record): book(record.events) for record in fault_free}
    for record in struck:
        if control := controls.get(_place(record)):
            yield record, control


def _place(record: TrialRecord) -> ConditionOfTrial:
    """All that a trial and its control have in common."""
    return record.scenario, record.instance, record.architecture, record.model, record.repetition
