"""A run of ours under load beside bare clients, in turns: so many calls in flight at an endpoint that answers after a given
time. The endpoint's own account is the judge of all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.request import Request, urlopen

from reliability.bare import CLIENTS
from reliability.kept import Taken

from bench.record.events import Called
from bench.record.reading import read_trials

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]
PACK, CALLS = "k8s_oomkill", 5
CONFIG = """
name = "load"
scenarios = ["{pack}"]
architectures = ["runtime_structured"]
models = ["local"]
repetitions = {trials}
seed = 1

[plan.none]
[model.local]
kind = "openai"
base_url = "{url}"
concurrency = {in_flight}
timeout_seconds = 600
"""


@dataclass(frozen=True)
class Cell:
    """So many calls in flight, answered after so many seconds each; each place in flight makes `rounds` calls."""

    seconds: float
    in_flight: int
    rounds: int

    @property
    def calls(self) -> int:
        return self.in_flight * self.rounds


CELLS = (Cell(2.0, 200, 10), Cell(0.2, 10, 20), Cell(0.2, 50, 20), Cell(0.2, 200, 20), Cell(0.2, 1000, 5))
AIMS = {(2.0, 200): 1.05, (0.2, 50): 1.10, (0.2, 200): 1.5}
"""Of the wall time by the ideal, where there is one."""
OURS = "ours"


def measured(cells: Sequence[Cell], repeats: int) -> Iterator[Taken]:
    """Yield measurements of our client and of each bare client in turns, each cell so often."""
    for cell in cells:
        with serving(cell.seconds) as url:
            for _ in range(repeats):
                yield ours(cell, url)
                for name in CLIENTS:
                    yield bare(name, cell, url)


@contextmanager
def serving(seconds: float) -> Iterator[str]:
    reference = json.loads((ROOT / "scenarios" / PACK / "reference" / "answer.json").read_text(encoding="utf-8"))
    replies = {f"# Task: {name}\n": json.dumps(answer) for name, answer in reference.items()}
    command = [sys.executable, str(HERE / "server.py"), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(replies) + "\n")
        process.stdin.flush()
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


def ours(cell: Cell, url: str) -> Taken:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "load.toml"
        trials = cell.calls // CALLS
        config.write_text(CONFIG.format(pack=PACK, url=url, in_flight=cell.in_flight, trials=trials), encoding="utf-8")
        command = [sys.executable, "-m", "bench", "run", str(config), "--scenarios", str(ROOT / "scenarios")]
        code, processor, peak = _run(command, folder)
        spans = sorted(_log(url))[1:]  # the first is the probe before the run
        run = next(Path(folder, "results").iterdir())
        calls = [event for record in read_trials(run) for event in record.events if isinstance(event, Called)]
    errors = sum(call.failure is not None for call in calls) + (code != 0)
    seconds = fmean(call.seconds for call in calls)
    return Taken(
        seconds=cell.seconds,
        in_flight=cell.in_flight,
        calls=cell.calls,
        who=OURS,
        wall=_wall(spans, cell),
        recorded=seconds / fmean(ended - began for began, ended in spans),
        client=fmean(call.client for call in calls) / seconds,
        processor=processor / len(calls),
        errors=errors,
        peak=peak,
        load=os.getloadavg()[0],
    )


def bare(name: str, cell: Cell, url: str) -> Taken:
    command = [sys.executable, str(HERE / "bare.py"), name, url, str(cell.in_flight), str(cell.calls)]
    code, processor, peak = _run(command, str(ROOT))
    wall = _wall(sorted(_log(url)), cell)
    shape = (cell.seconds, cell.in_flight, cell.calls, name)
    return Taken(*shape, wall, None, None, processor / cell.calls, int(code != 0), peak, os.getloadavg()[0])


def _run(command: Sequence[str], folder: str) -> tuple[int, float, float | None]:
    """Run a command, and return its exit code, seconds of the processor, and MiB of memory at most if /proc tells: rusage has
    what its parent had."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak, ended = None, 0
    while not ended:
        time.sleep(0.1)
        peak = _peak(process.pid) or peak
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime, peak


def _peak(process: int) -> float | None:
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return None
    lines = (line.split() for line in status.splitlines() if line.startswith("VmHWM"))
    return next((int(kibibytes) / 1024 for _, kibibytes, _ in lines), None)


def _log(url: str) -> list[tuple[float, float]]:
    """Return what the endpoint answered since it was asked last."""
    with urlopen(Request(f"{url}/log", method="DELETE")) as answer:
        body: dict[str, Any] = json.load(answer)
    return [(began, ended) for began, ended in body["spans"]]


def _wall(spans: Sequence[tuple[float, float]], cell: Cell) -> float:
    ideal = cell.seconds * len(spans) / cell.in_flight
    return (max(ended for _, ended in spans) - min(began for began, _ in spans)) / ideal
