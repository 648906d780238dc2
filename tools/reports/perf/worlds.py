"""Our own time per call of a world's tool, in a trial: fault draw, transaction, journal, digests and event, all but the tool.

PYTHONPATH=tests/support python tools/reports/perf/worlds.py [CALLS]
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "tests" / "support"))

from little_worlds import ENVIRONMENT, lived
from trials import Fault

from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Environment, Tool

NEVER: Fault = {"point": "tool", "effect": "error", "tool": "*", "probability": 1e-9}
"""It is drawn at each call, and all but never due."""
EACH = 50
"""Calls of each kind in one trial: the digests are over all rows, and a world of thousands of rows is no trial's."""
Took = dict[str, list[float]]


class Timed:
    """The world of the tests. Its tools count their own seconds, which are the pack's code."""

    def __init__(self) -> None:
        self.spent = 0.0

    def environment(self) -> Environment:
        return replace(ENVIRONMENT, throttle=0, tools=tuple(map(self._timed, ENVIRONMENT.tools)))

    def _timed(self, tool: Tool) -> Tool:
        run: Callable[..., Any] = tool.run

        def timed(*given: Any) -> Any:
            began = perf_counter()
            try:
                return run(*given)
            finally:
                self.spent += perf_counter() - began

        return replace(tool, run=timed)


def seconds_of_calls(calls: int) -> Took:
    """Of so many reads and writes, in turns, in trials of EACH, each without what its tool took."""
    took: Took = {"reads": [], "writes": []}
    timed = Timed()

    async def architecture(_: Task, workbench: Workbench) -> None:
        for number in range(EACH):
            for what, tool, given in (("reads", "read_order", {}), ("writes", "notify", {"text": str(number)})):
                timed.spent, began = 0.0, perf_counter()
                acted = await workbench.world.act(tool, {"order": 1, **given}, f"key {number}" if given else None)
                took[what].append(perf_counter() - began - timed.spent)
                assert acted.ok, acted.reason

    for _ in range(calls // EACH):
        lived(architecture, [NEVER], timed.environment())
    return took


if __name__ == "__main__":
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    for what, took in seconds_of_calls(calls).items():
        median, high = (1_000 * statistics.quantiles(took, n=20)[place] for place in (9, 18))
        print(f"{what}: {median:.2f} ms in the median, {high:.2f} ms at the 95th percentile, of {calls:,} calls each")
