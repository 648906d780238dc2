"""A command that was asked to stop does so in its own time, and at once when it is asked again, whatever its threads do."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from bench.signals import STOPPING

STUBBORN = """
import asyncio, signal, time
from bench.signals import Stop

async def work():
    with Stop(lambda: print("asked", flush=True)):
        print("ready", flush=True)
        await asyncio.to_thread(time.sleep, 60)  # as a grader does

signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a script
asyncio.run(work())
"""


@pytest.mark.parametrize("asked", STOPPING)
def test_the_first_signal_asks_and_the_second_ends_the_process(asked: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in ("ready\n", "asked\n"):
            assert process.stdout.readline() == line
            assert process.poll() is None
            process.send_signal(asked)
        process.communicate(timeout=60)
    assert process.returncode == -asked
