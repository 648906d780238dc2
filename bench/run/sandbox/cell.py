"""A sandbox cell: an interpreter without rights that waits for its only job, in a temporary folder.

One cell is kept ready, since the start of a cell takes longer than most jobs. Each cell is used only once, so that no job can
leave anything for the next job.
"""

from __future__ import annotations

import marshal
import os
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from bench.common.errors import SandboxBroken
from bench.run.sandbox.launching import Launcher, read_whole

ENVIRONMENT = {"PYTHONHASHSEED": "0"}
"""The cell's environment variables. With a fixed hash seed, sets of texts have the same order each time."""
START_CHILD = """
def start():
    import builtins, json, marshal, os, signal, sys
    code, job = marshal.load(sys.stdin.buffer)
    space = {"__name__": "sandbox", "__builtins__": dict(vars(builtins))}  # its own, which the code cannot change by name
    exec(code, space)
    del vars(sys.modules["__main__"])["start"]
    space["run"](job)
start()
"""


class SandboxCell:
    """A sandboxed process for one job. Use `run_in` on it once, or `close` it.

    limits    the limits that the launcher sets (`bench.run.sandbox.parent.Limits`)
    without   the names of the guards that are left out
    """

    def __init__(self, launcher: Launcher, limits: Mapping[str, Any], without: tuple[str, ...]):
        with ExitStack() as cleanup:
            temporary = tempfile.TemporaryDirectory(dir=launcher.folder, ignore_cleanup_errors=True)
            self.folder = Path(cleanup.enter_context(temporary))
            self.printed = cleanup.enter_context(tempfile.TemporaryFile())
            self.returned = cleanup.enter_context(tempfile.TemporaryFile())
            reading, writing = os.pipe()
            self._job: IO[bytes] = cleanup.enter_context(os.fdopen(writing, "wb", buffering=0))
            with os.fdopen(reading, "rb") as stdin:
                environment = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
                request = {"folder": str(self.folder), "limits": limits, "environment": environment, "without": without}
                self._started = launcher.start(START_CHILD, request, (stdin, self.printed, self.returned))
            self._status = cleanup.enter_context(os.fdopen(self._started.status, "rb"))
            self._leave = cleanup.pop_all()

    def send_job(self, job: Any) -> None:
        """Send the only job of this cell and start its time. `marshal` must be able to represent the job."""
        self._started.begin()
        with suppress(BrokenPipeError), self._job:  # the process has ended; its report says why
            remaining = memoryview(marshal.dumps(job))
            while remaining:
                remaining = remaining[self._job.write(remaining) :]

    def wait_for_report(self) -> bytes:
        """Wait until the process has ended, and return the launcher's report of its end (see `bench.run.sandbox.launcher`).
        After an exception here, such as an interrupt, `close` ends the process."""
        return self._status.read()

    def last_line(self) -> str:
        """Return the last line that the process printed."""
        return read_whole(self.printed).decode(errors="replace").strip().rpartition("\n")[2]

    def close(self) -> None:
        """End the process, and remove all its files. It can be called again."""
        self._leave.close()


_SPARES_LOCK = threading.Lock()


def take_cell(launcher: Launcher, limits: Mapping[str, Any], without: tuple[str, ...]) -> tuple[SandboxCell, bool]:
    """Return a cell with these limits and guards, and whether it was kept ready."""
    with _SPARES_LOCK:
        spare = launcher.spares.pop(_kind(limits, without), None)
    return (spare, True) if isinstance(spare, SandboxCell) else (SandboxCell(launcher, limits, without), False)


def keep_ready(launcher: Launcher, limits: Mapping[str, Any], without: tuple[str, ...]) -> None:
    """Keep a cell with these limits and guards ready, if there is none yet. If the launcher has ended, do nothing: the next
    caller gets the error."""
    with _SPARES_LOCK:
        kind = _kind(limits, without)
        if kind not in launcher.spares:
            launcher.close_spares()
            with suppress(SandboxBroken):
                launcher.spares[kind] = SandboxCell(launcher, limits, without)


def _kind(limits: Mapping[str, Any], without: tuple[str, ...]) -> object:
    """Return the key of the cells that can replace one another."""
    return START_CHILD, tuple(limits.items()), without
