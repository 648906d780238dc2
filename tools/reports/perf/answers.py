"""What one answer takes in the sandbox: an interpreter started for it, beside one that was kept ready. In one run, in turns.

python tools/reports/perf/answers.py [ANSWERS]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict

from bench.run.sandbox import Limits, SandboxResult, launching, run_python
from bench.run.sandbox.cell import SandboxCell
from bench.run.sandbox.parent import run_in

PROGRAM = "import solution\ndef main(values): return [solution.f(x) for x in values]"
CODE = "def f(x):\n    return sorted(str(x * i) for i in range(200))[:3]\n# "
LIMITS = Limits()
ROUNDS = 4
PAUSES = {"one after another": 0.0, "with 0.3 s between": 0.3}


def started(number: int) -> SandboxResult:
    """Return the answer of this number, in an interpreter that is started for it."""
    with closing(SandboxCell(launching.launcher(), asdict(LIMITS), ())) as cell:
        return run_in(cell, (_files(number), PROGRAM, [1, 2, 3]), ())


def kept(number: int) -> SandboxResult:
    """Return the answer of this number, as graders have it run."""
    return run_python(_files(number), PROGRAM, [1, 2, 3], LIMITS)


def _files(number: int) -> dict[str, str]:
    return {"solution.py": f"{CODE}{number}"}


def seconds(run: Callable[[int], SandboxResult], answers: int, pause: float) -> list[float]:
    """Return the seconds of each answer, after one that is not counted."""
    taken = []
    for number in range(answers + 1):
        began = time.perf_counter()
        assert run(number).ok
        taken.append(time.perf_counter() - began)
        time.sleep(pause)
    return taken[1:]


def main(answers: int) -> None:
    """Print median and quartiles of both, in milliseconds."""
    for words, pause in PAUSES.items():
        by_start: dict[str, list[float]] = {"started": [], "kept ready": []}
        for _ in range(ROUNDS):
            launching.launcher().close_spares()
            by_start["started"] += seconds(started, answers // ROUNDS, pause)
            by_start["kept ready"] += seconds(kept, answers // ROUNDS, pause)
        for name, taken in by_start.items():
            low, middle, high = (1000 * quantile for quantile in statistics.quantiles(taken, n=4))
            print(f"{words}, {name}: {middle:.1f} ms an answer (quartiles {low:.1f} and {high:.1f}), N = {len(taken)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
