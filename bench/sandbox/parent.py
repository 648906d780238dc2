"""Run code that nobody trusts: code and inputs go in, one JSON value comes out, whatever the code tries.

    result = run_python({"pipeline.py": edited}, "import pipeline\\ndef main(value): return pipeline.run(value)", ["d1,20"])
    result.value if result.ok else result.problem

The code runs in a process of its own (`bench.sandbox.child`), in a throw-away folder, with an environment of its own. What
holds it there, outermost first:

1. This process waits no longer than `wall_seconds`, then kills the whole process group. What the code prints and what it
   returns land in unlinked files that the kernel keeps below `output_bytes`; no pipe can block, no memory of ours fills.
2. Kernel limits on CPU time, address space, file size and open files; no core dumps.
3. On Linux, without need of root: Landlock leaves only the interpreter's library and the throw-away folder readable and
   nothing writable; a seccomp filter kills the process at a system call that makes a process or a thread, signals, has a
   file signal, traces, opens a socket or changes limits or files by name; all capabilities are dropped, so root has no way
   round.
4. Python's audit events: opening any other file, writing one, starting a process, a socket, ctypes and the like end the
   run at once, and name themselves in `problem`. It is a trip-wire that clever code can step over; 2 and 3 are the wall.

What is missing elsewhere: without Landlock (Linux before 5.13) and without seccomp (other machines than x86-64 and arm64)
that part of 3 is left out; on macOS all of 3 is, and its kernel does not hold the limit on memory. There, run only code
that is careless, not code that is hostile.

Not defended against: faults of the kernel, and what can be learned from timing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from bench.scenario import Json

CHILD = Path(__file__).with_name("child.py")
ENVIRONMENT = {"PYTHONHASHSEED": "0"}
"""Sets of texts have one order, so that the same code does the same each time."""


class SandboxBroken(Exception):
    """The sandbox could not be set up. It says nothing about the code that was to run in it."""


@dataclass(frozen=True)
class Limits:
    """What untrusted code may use. `output_bytes` holds for what it prints, and again for what it returns."""

    wall_seconds: float = 2.0
    cpu_seconds: int = 2
    memory_bytes: int = 512 * 2**20
    output_bytes: int = 2**20
    open_files: int = 32


@dataclass(frozen=True)
class SandboxResult:
    """`value` is what the program returned if `ok`; else `problem` says in one line why there is none.

    `out_of_time` says whether a limit on time ended it.
    """

    ok: bool
    value: Json = None
    problem: str = ""
    out_of_time: bool = False


def run_python(files: Mapping[str, str], program: str, value: Json, limits: Limits | None = None) -> SandboxResult:
    """Call `main(value)` of `program` in a new process in which `files` (name -> text) can be imported.

    `value` and the result are JSON values. Whatever the code does becomes a problem, never an exception.
    Raises SandboxBroken or OSError where this machine could not run any code at all.
    """
    limits = limits or Limits()
    with (
        tempfile.TemporaryDirectory(prefix="sandbox-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as job,
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as returned,
        tempfile.TemporaryFile() as started,
    ):
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8", errors="replace", newline="")
        channels = {"channel": returned.fileno(), "started": started.fileno()}
        folders = {"folder": str(Path(folder).resolve()), "library": str(Path(os.__file__).resolve().parent)}
        order = {"program": program, "value": value, "limits": asdict(limits), **channels, **folders}
        job.write(json.dumps(order).encode())
        job.seek(0)
        ended = _run(folder, job, printed, tuple(channels.values()), limits.wall_seconds)
        if not _read(started):
            said = _read(printed).decode(errors="replace").strip().rpartition("\n")[2]
            raise SandboxBroken(f"the sandbox did not start (exit code {ended}): {said[:200]}")
        return _result(ended, _read(returned))


def _run(folder: str, job: IO[bytes], printed: IO[bytes], channels: tuple[int, ...], wall_seconds: float) -> int:
    """The exit code of the child, negative if a signal ended it. Nothing of its process group is alive afterwards."""
    command = [sys.executable, "-P", "-s", "-S", "-B", str(CHILD)]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdin=job,
        stdout=printed,
        stderr=subprocess.STDOUT,
        pass_fds=channels,
        start_new_session=True,
    )
    alarm = threading.Timer(wall_seconds, process.kill)
    alarm.start()
    try:
        return process.wait()  # without a time-out: Popen's own would poll, and cost more than the run
    finally:
        alarm.cancel()
        # Also on an interrupt of ours, and for what the child may have left behind: it led its group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(file: IO[bytes]) -> bytes:
    """The whole of a file that the kernel kept small."""
    file.seek(0)
    return file.read()


def _result(ended: int, written: bytes) -> SandboxResult:
    if ended < 0:
        why = "ran longer than it may" if -ended == signal.SIGKILL else signal.strsignal(-ended)
        out_of_time = -ended in (signal.SIGKILL, signal.SIGXCPU)
        return SandboxResult(False, problem=f"ended by signal {-ended}: {why}", out_of_time=out_of_time)
    if not written:
        return SandboxResult(False, problem=f"ended with exit code {ended} and without a result")
    try:
        said = json.loads(written)
        if "problem" in said:
            return SandboxResult(False, problem=" ".join(str(said["problem"]).split())[:200])
        return SandboxResult(True, said["value"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return SandboxResult(False, problem="wrote a result that cannot be read")
