"""What calls cost: seconds of processor, and by how much their process grew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time
from typing import Any

from commands import FORKS

PATIENCE = 100.0
"""Seconds for one call, on a busy machine."""
SLACK = 5.0
"""A promise of seconds holds on a quiet machine, where `nox -s reliability` measures it. A test must pass on a slow and busy
machine, so it fails at this many times the promise: a reader whose work grows faster than its text takes far longer."""


@dataclass(frozen=True)
class Cost:
    """`mebibytes` is the peak above what the process held before."""

    seconds: float
    mebibytes: float


def costs_of(call: Callable[[Any], object], cases: Iterable[object], prepare: Callable[[Any], object]) -> dict[Any, Cost]:
    """By case, what `call(prepare(case))` takes, without the preparation; in a process of its own. Both are functions of a
    module. Raises AssertionError where a call does not come back."""
    here, there = FORKS.Pipe(duplex=False)
    cases = list(cases)
    process = FORKS.Process(target=_measure, args=(there, call, cases, prepare), daemon=True)
    process.start()
    there.close()
    costs = {}
    try:
        for case in cases:
            assert here.poll(PATIENCE), f"{case}: no end within {PATIENCE:g} s"
            costs[case] = Cost(*here.recv())
    finally:
        process.kill()
        process.join()
    return costs


@dataclass
class Took:
    seconds: float = 0.0


@contextmanager
def processor_time(at_most: float) -> Iterator[Took]:
    """Fail unless the block takes at most `SLACK` times these seconds of this process's processor time."""
    took, began = Took(), process_time()
    yield took
    took.seconds = process_time() - began
    assert took.seconds < SLACK * at_most


def _measure(there: Connection, call: Callable[[Any], object], cases: list[object], prepare: Callable[[Any], object]) -> None:
    for case in cases:
        given = prepare(case)
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        held, began = _memory("VmRSS"), process_time()
        call(given)
        there.send((process_time() - began, (_memory("VmHWM") - held) / 1024))


def _memory(name: str) -> int:
    """A line of what the kernel says of this process, in KiB."""
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0])
