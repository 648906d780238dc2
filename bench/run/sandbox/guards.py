"""Find out which of the sandbox's guards this machine has. All code in the sandbox runs under these guards: if one of them
cannot be set up, no code runs.

The environment variable BENCH_SANDBOX_WITHOUT names guards to leave out, separated by commas, to test what the other guards
stop. A guard that is left out counts as missing, also in records, and grading is refused as on a machine without that guard.
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
from bench.run.sandbox.syscalls import CALLS, CALLS_WITH_ARGUMENTS, MACHINES

NEEDS_LINUX = "needs Linux"
WITHOUT_ENV = "BENCH_SANDBOX_WITHOUT"
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
        """The guards that are not in force."""
        return tuple(guard for guard in self.each if not guard.in_force)

    def as_json(self) -> dict[str, str]:
        """Return, by guard, "in force" or why it is not in force, as a manifest stores it."""
        return {guard.name: "in force" if guard.in_force else f"missing: {guard.words}" for guard in self.each}


def guards() -> Guards:
    """Return the guards of this machine. The function only queries the kernel. Raises ConfigError if an unknown guard is to be
    left out."""
    without, available = guards_left_out(), guards_of_machine(backend())
    words = f"left out, as {WITHOUT_ENV} says"
    return Guards(tuple(Guard(guard.name, False, words) if guard.name in without else guard for guard in available))


def guards_left_out() -> tuple[str, ...]:
    """Return the names of the guards that the environment leaves out. Raises ConfigError for an unknown name."""
    names = tuple(name for word in os.environ.get(WITHOUT_ENV, "").split(",") if (name := word.strip()))
    known = [guard.name for guard in guards_of_machine("")]
    for name in names:
        if name not in known:
            raise ConfigError(f"{WITHOUT_ENV}: there is no guard '{name}'; {nearest(name, known)}")
    return names


@cache
def guards_of_machine(backend_name: Backend) -> tuple[Guard, ...]:
    """Return all guards of this machine with this backend, including those that the environment leaves out."""
    return tuple(_guards(sys.platform == "linux", backend_name))


def _guards(linux: bool, backend_name: Backend) -> Iterator[Guard]:
    """Yield all guards of the sandbox, in force or not. `backend_name` is the program that isolates
    processes."""
    if backend_name:
        yield Guard(backend_name, True, "files, processes, a network and users of its own")
    yield Guard(
        "limits", linux, "CPU time, memory, file size, open files" if linux else "the kernel does not hold that on memory"
    )
    yield _guard("idle time", Path("/proc/self/schedstat").exists(), "sleeping code is ended early", "no /proc/PID/schedstat")
    yield _guard("parent's end", linux, "no code outlives it", NEEDS_LINUX)
    yield _guard("capabilities", linux, "root has none", NEEDS_LINUX)
    version = kernel.landlock_version()
    for name, (since, release, words) in LANDLOCK.items():
        lacks = f"Landlock {since} (Linux {release}) is needed, here is {version or 'none'}"
        program = f"Landlock {version}" if version >= since else backend_name
        yield _guard(name, bool(program), f"{words} ({program})", lacks)
    calls = f"{len(CALLS) + len(CALLS_WITH_ARGUMENTS)} are allowed, all others refused"
    yield _guard("system calls", kernel.can_filter_calls(), calls, f"seccomp is needed, on {' or '.join(MACHINES)}")
    yield Guard("trip-wire", True, "what was tried ends the run and is named; clever code steps over it")


def _guard(name: str, in_force: bool, does: str, lacks: str) -> Guard:
    """Return a guard that says what it does if it is in force, and what it lacks if not."""
    return Guard(name, in_force, does if in_force else lacks)
