"""A run of a simulated model, and what each of its processes takes, read off /proc while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from commands import environment, workplace

from bench.record.files import RESPONSES, TRIALS

ARMS = 4
CALLS_A_TRIAL = 3.2
"""About, with the config's failures and faults."""
TICKS = os.sysconf("SC_CLK_TCK")
PAUSE = 0.2
ROLES = (("raylet/raylet", "Ray: raylet"), ("gcs_server", "Ray: gcs_server"), ("ray::", "worker"))
"""What the command line of a process holds -> what it does. All other descendants are agents of Ray."""
RUN, AGENT = "the run's process", "Ray: agents"


@dataclass(frozen=True)
class Process:
    """What processes of one role took in one run.

    workers     0 for a run in one process
    again       seconds in which the same command says that nothing is missing
    size        bytes of the run's folder
    count       processes of this role
    peak        MiB of the largest of them, at most
    processor   seconds of processor of all of them
    """

    workers: int
    trials: int
    calls: int
    seconds: float
    again: float
    size: int
    role: str
    count: int
    peak: float
    processor: float


@dataclass
class Seen:
    """A process at work: its role, its peak in KiB so far, and its ticks of processor."""

    role: str
    peak: int = 0
    ticks: int = 0


def measured(calls: int, workers: int) -> Iterator[Process]:
    """Run about so many calls, on so many workers, and yield what each role's processes took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workplace(folder, repetitions=round(calls / CALLS_A_TRIAL / ARMS))
        on_ray = ["--engine", "ray", "--workers", f"{workers}"] if workers else []
        words = [sys.executable, "-m", "bench", "run", "configs/small.toml", "--name", "run"]
        began = time.monotonic()
        seen = watched([*words, *on_ray], folder)
        seconds = time.monotonic() - began
        began = time.monotonic()
        watched(words, folder)
        again = time.monotonic() - began
        run = folder / "results" / "run"
        trials, made = (_lines(run / file) for file in (TRIALS, RESPONSES))
        size = sum(path.stat().st_size for path in run.iterdir())
    for role in dict.fromkeys(each.role for each in seen):
        processes = [each for each in seen if each.role == role]
        peak, ticks = max(each.peak for each in processes) / 1024, sum(each.ticks for each in processes) / TICKS
        yield Process(
            workers, trials - 4, made, seconds, again, size, role, len(processes), peak, ticks
        )  # two sessions' lines each


def watched(words: list[str], folder: Path) -> list[Seen]:
    """Run a command to its end; all its processes. Raises RuntimeError where it fails."""
    seen: dict[int, Seen] = {}
    with subprocess.Popen(words, cwd=folder, env=environment(PYTHONWARNINGS="default"), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for number in _family(process.pid):
                _look(number, seen, process.pid)
            time.sleep(PAUSE)
    if process.returncode:
        raise RuntimeError(f"bench run exited with {process.returncode}")
    return list(seen.values())


def _look(number: int, seen: dict[int, Seen], first: int) -> None:
    try:
        words = Path(f"/proc/{number}/cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")
        status = Path(f"/proc/{number}/status").read_text(encoding="utf-8").splitlines()
        ticks = sum(map(int, _stat(number)[11:13]))
    except (FileNotFoundError, ProcessLookupError):
        return
    if not words:  # it has ended, and nobody has taken note of that yet
        return
    peak = next((int(line.split()[1]) for line in status if line.startswith("VmHWM")), 0)
    role = RUN if number == first else next((role for part, role in ROLES if part in words), AGENT)
    seen[number] = Seen(role, max(peak, seen[number].peak if number in seen else 0), ticks)


def _family(first: int) -> set[int]:
    """This process and all its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    family = {first}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _stat(number: int) -> list[str]:
    """Its fields from the state on: the name before may hold blanks."""
    return Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
