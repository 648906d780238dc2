"""Trials with their controls: the same trials without faults."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from bench.record.ledger import LedgerEntry, book
from bench.record.record import TrialRecord

AT_ONCE = 5_000
"""The most controls in memory."""


def with_controls(
    read: Callable[[Container[str]], Iterable[TrialRecord]], controls: Mapping[str, str]
) -> Iterator[tuple[TrialRecord, tuple[LedgerEntry, ...]]]:
    """Yield trials, each with the calls of its control.

    Args:
        read: (ids) -> the records of these trials.
        controls: Trial -> its control, both by id.
    """
    trials = list(controls)
    for first in range(0, len(trials), AT_ONCE):
        control_of = {trial: controls[trial] for trial in trials[first : first + AT_ONCE]}
        calls = {record.id: book(record.events) for record in read(set(control_of.values()))}
        for record in read(control_of):
            yield record, calls[control_of[record.id]]
