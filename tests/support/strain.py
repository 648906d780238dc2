"""How much a command was strained by what it was given: how long its event loop stood still, and how far its memory grew.

    (code, out, err), strain = strained(folder, "run", "configs/small.toml")
    assert strain.stall <= 0.1

A machine that does other work must not make a test fail. So the time in which the command's threads waited for a processor,
which the kernel counts, is no stall. Time in which the loop waits for a lock of the interpreter or for a child process is.
"""

from __future__ import annotations

import functools
import json
import resource
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.util import Finalize
from pathlib import Path
from time import perf_counter

from commands import Ended, Started
from sabotage import Sabotage

BEAT = 0.005
"""Seconds between two beats of the watch."""
MAX_MEMORY = 6 * 2**30
"""Bytes of address space that the command may have: a machine survives a test that fails."""


@dataclass
class Strain:
    """`stall` is the longest time, in seconds, in which the event loop ran nothing that was due; `grown` is how many bytes the
    peak of the command's memory lies above what it had when it began."""

    stall: float = 0.0
    grown: int = 0


def strained(folder: Path, *words: str, timeout: float = 100, **variables: str) -> tuple[Ended, Strain]:
    """Run `bench` to its end, and measure the strain."""
    file = folder / "strain.json"
    with Started(folder, words, variables, watched(file)) as command:
        ended = command.ended(timeout)
    return ended, strain_in(file)


def watched(file: Path) -> Sabotage:
    """For a command that is started: it leaves its strain in this file at its end."""
    return functools.partial(_watch, file)


def strain_in(file: Path) -> Strain:
    return Strain(**json.loads(file.read_text()))


def _watch(file: Path) -> None:
    """In the command's own process: watch each event loop that it makes, and leave the strain in a file at the end."""
    from bench.run.trial import loop  # noqa: PLC0415  # loaded already, by the process that forks

    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    strain, begun = Strain(), _memory("VmRSS")

    class Watched(loop.Loop):
        def __init__(self) -> None:
            super().__init__()
            self.call_soon(self.beat, perf_counter(), _waited())

        def beat(self, due: float, before: Mapping[str, int]) -> None:
            now, waited = perf_counter(), _waited()
            spared = sum(waited[thread] - before[thread] for thread in waited.keys() & before.keys()) / 1e9
            strain.stall = max(strain.stall, now - due - spared)
            self.call_later(BEAT, self.beat, now + BEAT, waited)

    def leave() -> None:
        strain.grown = _memory("VmHWM") - begun
        file.write_text(json.dumps(asdict(strain)))

    vars(loop)["Loop"] = Watched
    Finalize(None, leave, exitpriority=1)


def _waited() -> dict[str, int]:
    """For each of this process's threads the nanoseconds in which it was ready to run and had no processor."""
    waited = {}
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has just ended
            waited[thread.name] = int((thread / "schedstat").read_text().split()[1])
    return waited


def _memory(name: str) -> int:
    """A line of what the kernel says of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024
