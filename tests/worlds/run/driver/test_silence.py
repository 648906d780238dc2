"""An agent may see to it that nobody says when it has ended: it is ended all the same."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from waiting import wait_until

from bench.run.trial.loop import run
from bench.wire.agent_process import AgentProcess, ProcessExit

SILENCES = """
import os, signal, time
supervisor = os.getppid()
if os.fork():
    time.sleep(600)
os.setsid()
opened = f"/proc/{supervisor}/fd"
for name in os.listdir(opened):
    if os.readlink(f"{opened}/{name}").startswith("pipe:"):
        os.open(f"{opened}/{name}", os.O_WRONLY | os.O_NONBLOCK)
os.kill(supervisor, signal.SIGKILL)
print(os.getpid(), flush=True)
time.sleep(600)
"""
"""A daemon of the agent holds the file on which the supervisor would say how it ended, and kills the supervisor."""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="elsewhere nobody can open another's files")
def test_an_agent_that_silences_who_watches_over_it_is_ended_with_its_daemon(tmp_path: Path) -> None:
    async def silenced() -> tuple[int, ProcessExit, float]:
        life = AgentProcess([sys.executable, "-c", SILENCES], tmp_path, {"AGENT_FOLDER": str(tmp_path)}, 10**9, patience=0.1)
        try:
            while not life.output.text.endswith("\n"):  # noqa: ASYNC110  it writes when it is ready
                await asyncio.sleep(0.01)
            assert not life.ended.done()
        finally:
            async with asyncio.timeout(20):
                await life.close()
        return int(life.output.text), life.ended.result(), life.seconds

    daemon, ended, seconds = run(silenced())
    assert ended == ProcessExit() and 0.1 <= seconds < 20
    wait_until(lambda: _state_of(daemon) in ("", "Z", "X"))


def _state_of(process: int) -> str:
    """As Linux writes it; "" where there is none of that number."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return ""
