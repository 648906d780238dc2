"""A process that is frozen does nothing more, not even in a thread of its own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from bench.run.trial.loop import run
from bench.wire.agent_process import AgentProcess

COUNTS = """
import threading, time
def count():
    with open("counted", "a", buffering=1) as file:
        while True:
            file.write("x")
            file.flush()
for _ in range(4):
    threading.Thread(target=count).start()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux tells whether a thread has stopped")
def test_no_thread_of_a_frozen_process_goes_on(tmp_path: Path) -> None:
    async def frozen() -> list[int]:
        life = AgentProcess([sys.executable, "-c", COUNTS], tmp_path, {}, 10**9)
        try:
            while "ready" not in life.output.text:  # noqa: ASYNC110  it writes when it is ready
                await asyncio.sleep(0.01)
            sizes = []
            life.freeze()
            for _ in range(50):
                sizes.append((tmp_path / "counted").stat().st_size)
                await asyncio.sleep(0.001)
            return sizes
        finally:
            await life.close()

    assert len(set(run(frozen()))) == 1
