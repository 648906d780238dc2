"""Peak memory of `bench run` by number of trials, of a pack that ends in an answer and of one with a world: a run streams, so
that ten times the trials take hardly more memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "tests" / "support"))

from commands import environment, workplace

PACKS = Path(__file__).parents[3] / "tests" / "support" / "worlds"
ARMS = 4
FEW, MANY = 400, 4_000
WORLDS = """
name = "worlds"
scenarios = ["trips/trip_01"]
architectures = ["state_machine", "kept"]
models = ["simulated"]
plans = ["none", "crash"]
repetitions = {repetitions}
seed = 1

[architecture.kept]
base = "state_machine"
remedies = true

[plan.crash]
faults = [{{ point = "process", effect = "unacknowledged", tool = "pay", attempts = [1] }}]

[model.simulated]
kind = "simulated"
"""


def answered(folder: Path, repetitions: int) -> list[str]:
    workplace(folder, repetitions=repetitions)
    return ["configs/small.toml"]


def worlds(folder: Path, repetitions: int) -> list[str]:
    (folder / "worlds.toml").write_text(WORLDS.format(repetitions=repetitions), encoding="utf-8")
    return ["worlds.toml", "--scenarios", str(PACKS)]


def peak_mebibytes(words: list[str], folder: Path) -> float:
    """Return the peak memory of one process that runs a config in this folder."""
    command = [sys.executable, "-m", "bench", "run", *words]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"bench run exited with {process.returncode}")
    return usage.ru_maxrss / 1024


if __name__ == "__main__":
    for what, prepared in (("answers", answered), ("worlds", worlds)):
        peaks = []
        for trials in (FEW, MANY):
            with tempfile.TemporaryDirectory() as name:
                peaks.append(peak_mebibytes(prepared(Path(name), trials // ARMS), Path(name)))
        few, many = peaks
        print(f"peak memory, {what}: {few:.0f} MiB at {FEW:,} trials, {many:.0f} MiB at {MANY:,}: {many / few:.2f} times")
