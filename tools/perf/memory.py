"""Peak memory of `bench run` by number of trials: a run streams, so that ten times the trials take hardly more memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from commands import environment, workplace

ARMS = 4


def peak_mebibytes(trials: int) -> float:
    """Of one process that runs so many trials of a small pack from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        workplace(Path(folder), repetitions=trials // ARMS)
        command = [sys.executable, "-m", "bench", "run", "configs/small.toml"]
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"bench run exited with {process.returncode}")
    return usage.ru_maxrss / 1024


if __name__ == "__main__":
    few, many = peak_mebibytes(1_000), peak_mebibytes(10_000)
    print(f"peak memory: {few:.0f} MiB at 1,000 trials, {many:.0f} MiB at 10,000: {many / few:.2f} times")
