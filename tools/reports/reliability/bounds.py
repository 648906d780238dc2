"""What tries to take more than it may, and what tries to outlive its parent. A little more: nobody is to notice it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from reliability.attempts import Target

from bench.run.sandbox import Limits, run_python

TIGHT = Limits(wall_seconds=5.0, cpu_seconds=1, memory_bytes=128 * 2**20, output_bytes=2**16, open_files=16, idle_seconds=0.3)
OUTLIVES = """
from bench.run.sandbox import Limits, run_python
run_python({}, "import time\\ndef main(value): time.sleep(600)", None, Limits(wall_seconds=600, idle_seconds=600))
"""
PATIENCE = 60.0
"""Seconds in which a process is to begin."""
GONE_AFTER = 1.0
"""Seconds in which one is to have ended whose parent has."""


def _takes(body: str) -> Callable[[Target], bool]:
    program = f"def main(value):\n    {body}\n    return 1"
    return lambda _: run_python({}, program, None, TIGHT).ok


def _outlives(_: Target) -> bool:
    """Whether code still runs after its launcher was killed, with the process that asked for it. It is ended then."""
    process = subprocess.Popen([sys.executable, "-c", OUTLIVES], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        launcher = _first_child(process.pid)
        code = _first_child(launcher)
        time.sleep(0.3)  # it is to be past its own start, in which it looks for its parent
        os.kill(launcher, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    alive = not _ends(code)
    if alive:
        with suppress(ProcessLookupError):
            os.kill(code, signal.SIGKILL)
    return alive


def _first_child(process: int) -> int:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(OSError):
            if children := Path(f"/proc/{process}/task/{process}/children").read_text().split():
                return int(children[0])
        time.sleep(0.01)
    raise TimeoutError(f"process {process} starts none")


def _ends(process: int) -> bool:
    until = time.monotonic() + GONE_AFTER
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


BOUNDS: Mapping[str, Callable[[Target], bool]] = {
    "CPU time": _takes("while True: pass"),
    "memory": _takes("bytearray(192 * 2**20)"),
    "output": _takes("print('x' * 2**17)"),
    "a result too long": lambda _: run_python({}, "def main(value): return 'x' * 2**17", None, TIGHT).ok,
    "open files": _takes("import os; [os.dup(0) for _ in range(20)]"),
    "idle time": _takes("import time; time.sleep(1)"),
    "outliving its parent": _outlives,
}
