"""Find out which of the sandbox's guards this machine has. A guard that it has protects all code in the sandbox: if it cannot
be set up, no code runs.

The environment variable BENCH_SANDBOX_WITHOUT names guards to leave out, separated by commas, to see what the others hold. A
guard that is left out counts as missing, also in what is recorded, and grading is refused as on a machine without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.common.errors import ConfigError, nearest
from bench.run.sandbox import kernel
from bench.run.sandbox.bubblewrap import Backend, backend
from bench.run.sandbox.syscalls import ALLOWED, JUDGED, MACHINES

NEEDS_LINUX = "needs Linux"
WITHOUT = "BENCH_SANDBOX_WITHOUT"
LANDLOCK = {
    kernel.FILES: (1, "5.13", "nothing is written, nothing foreign is read"),
    kernel.TRUNCATION: (kernel.TRUNCATE_FROM, "6.2", "no file is emptied"),
    kernel.TCP: (kernel.NETWORK_FROM, "6.7", "no connection, no port"),
    kernel.SIGNALS: (kernel.SCOPES_FROM, "6.12", "none beyond itself, and no abstract socket"),
}
"""Guard -> the first version of Landlock with it, the first version of Linux with it, and what it does."""


@dataclass(frozen=True)
class Guard:
    """A guard of the sandbox. `words` says in one line what the guard does, or why it is not in force."""

    name: str
    in_force: bool
    words: str


@dataclass(frozen=True)
class Guards:
    """All guards, in the order of `bench.run.sandbox.parent`."""

    each: tuple[Guard, ...]

    @property
    def missing(self) -> tuple[Guard, ...]:
        return tuple(guard for guard in self.each if not guard.in_force)

    def as_json(self) -> dict[str, str]:
        """Return "in force", or why not, for each guard by name, as a manifest stores it."""
        return {guard.name: "in force" if guard.in_force else f"missing: {guard.words}" for guard in self.each}


def guards() -> Guards:
    """Return the guards of this machine. The function only queries the kernel. Raises ConfigError if an unknown guard is to be
    left out."""
    without, guards_there = guards_left_out(), guards_of_machine(backend())
    gone = f"left out, as {WITHOUT} says"
    return Guards(tuple(Guard(guard.name, False, gone) if guard.name in without else guard for guard in guards_there))


def guards_left_out() -> tuple[str, ...]:
    """Return the names of the guards that the environment leaves out. Raises ConfigError for an unknown name."""
    names = tuple(name for word in os.environ.get(WITHOUT, "").split(",") if (name := word.strip()))
    known = [guard.name for guard in guards_of_machine("")]
    for name in names:
        if name not in known:
            raise ConfigError(f"{WITHOUT}: there is no guard '{name}'; {nearest(name, known)}")
    return names


@cache
def guards_of_machine(chosen: Backend) -> tuple[Guard, ...]:
    """Return all guards of this machine with this backend, including those that the environment leaves out."""
    return tuple(_guards(sys.platform == "linux", chosen))


def _guards(linux: bool, chosen: Backend) -> Iterator[Guard]:
    """Yield the guards of the sandbox, each with whether this machine has it. `chosen` is the program that isolates
    processes."""
    if chosen:
        yield Guard(chosen, True, "files, processes, a network and users of its own")
    yield Guard(
        "limits", linux, "CPU time, memory, file size, open files" if linux else "the kernel does not hold that on memory"
    )
    yield _guard("idle time", Path("/proc/self/schedstat").exists(), "sleeping code is ended early", "no /proc/PID/schedstat")
    yield _guard("parent's end", linux, "no code outlives it", NEEDS_LINUX)
    yield _guard("capabilities", linux, "root has none", NEEDS_LINUX)
    version = kernel.landlock_version()
    for name, (since, release, words) in LANDLOCK.items():
        lacks = f"Landlock {since} (Linux {release}) is needed, here is {version or 'none'}"
        by = f"Landlock {version}" if version >= since else chosen
        yield _guard(name, bool(by), f"{words} ({by})", lacks)
    calls = f"{len(ALLOWED) + len(JUDGED)} are allowed, all others refused"
    yield _guard("system calls", kernel.can_filter_calls(), calls, f"seccomp is needed, on {' or '.join(MACHINES)}")
    yield Guard("trip-wire", True, "what was tried ends the run and is named; clever code steps over it")


def _guard(name: str, in_force: bool, does: str, lacks: str) -> Guard:
    return Guard(name, in_force, does if in_force else lacks)
