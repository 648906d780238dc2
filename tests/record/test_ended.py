"""The trials that have ended, of which there can be millions."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest

from bench.record import ended
from bench.record.ended import EndedTrials


def trials(first: int, last: int) -> list[str]:
    return [hashlib.sha256(str(number).encode()).hexdigest()[:20] for number in range(first, last)]


def test_each_trial_that_was_added_is_there_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended, "RECENT", 8)
    for count in (0, 7, 8, 9, 40):
        added = EndedTrials(trials(0, count))
        assert len(added) == count and sorted(added) == sorted(trials(0, count))
        assert all(trial in added for trial in trials(0, count))
        assert not any(trial in added for trial in ("", "g" * 20, *trials(count, 60)))


def test_a_trial_takes_thirty_bytes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended, "RECENT", 2**10)
    EndedTrials(trials(0, 2**10))  # loads what sorts
    tracemalloc.start()
    added = EndedTrials(iter(trials(0, 2**14)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(added) < 30
