"""What a life in the probe's box costs beside one outside of it, in milliseconds of processor time.

    python tools/reports/perf/box.py

A life is a start of `true` to its end. All of it counts: the programs that start it and hold the box, and the kernel's work for
them. It ends with exit code 1 if a life in the box takes more than 150 ms, or the box's part of a reset without a change 50 ms.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.probe.run.box.box import Box, box_plan
from bench.wire.agent_process import AgentProcess

LIVES = 30
LONGEST_LIFE, LONGEST_RESET = 150.0, 50.0


async def live(folder: Path, words: Sequence[str], namespaces: Sequence[int]) -> None:
    process = AgentProcess(words, folder, {**os.environ, "AGENT_FOLDER": str(folder)}, 2**30, namespaces=namespaces)
    await process.ended
    await process.close()


def of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def milliseconds(work: Callable[[], None], clock: Callable[[], float]) -> float:
    """Return the median milliseconds of many."""
    took = []
    for _ in range(LIVES):
        began = clock()
        work()
        took.append(1000 * (clock() - began))
    return median(took)


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        folder, layers, gateway = (Path(made, name) for name in ("agent", "layers", "gateway"))
        for each in (folder, layers, gateway):
            each.mkdir()
        box = Box(box_plan(folder, layers, gateway, (), [], (), {**os.environ, "HOME": str(folder)}))
        began = perf_counter()
        box.open()
        print(f"opening a box: {1000 * (perf_counter() - began):.0f} ms of wall time")
        writes = ["/bin/sh", "-c", "echo x > written"]
        outside = milliseconds(lambda: asyncio.run(live(folder, ["/bin/true"], ())), of_children)
        inside = milliseconds(lambda: asyncio.run(live(folder, ["/bin/true"], box.namespaces)), of_children)
        unchanged = milliseconds(box.reset_files, perf_counter)
        asyncio.run(live(folder, writes, box.namespaces))

        def renewed() -> None:
            asyncio.run(live(folder, writes, box.namespaces))
            box.reset_files()

        with_layer = milliseconds(renewed, perf_counter)
        box.close()
    print(f"a life outside: {outside:.1f} ms of processor time; in the box: {inside:.1f} ms")
    print(
        f"a life that writes, and a new layer: {with_layer:.1f} ms of wall time; a renewal without a change: {unchanged:.1f} ms"
    )
    return int(inside > LONGEST_LIFE or unchanged > LONGEST_RESET)


if __name__ == "__main__":
    sys.exit(main())
