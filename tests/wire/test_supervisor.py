"""Whoever drives an agent may die himself: its processes end with him."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.wire.agent_process import SUPERVISOR, AgentProcess, ProcessExit

SLEEPS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
DAEMON = f"import os, time; os.fork() and time.sleep(600); os.setsid(); {SLEEPS}"


def test_when_the_driver_is_gone_the_agent_and_its_daemon_are_killed() -> None:
    status, theirs = os.pipe()
    control, ours = os.pipe()
    ours_first = [sys.executable, "-I", "-S", str(SUPERVISOR), str(theirs), str(control), "1000000", ""]
    words = [*ours_first, sys.executable, "-c", DAEMON]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, pass_fds=(theirs, control)) as supervisor:
        os.close(theirs)
        assert supervisor.stdout
        daemon = int(supervisor.stdout.readline())
        os.close(ours)  # as the kernel does when the driver dies
        assert supervisor.wait() == 0
        with os.fdopen(status) as pipe:
            assert pipe.read().split("\n")[1] == "signal 9"
        assert not is_there(daemon)
    os.close(control)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux")
@pytest.mark.parametrize(("seconds", "is_named"), [(600, True), (0, False)])
def test_a_process_that_outlives_the_command_is_named_before_it_is_killed(tmp_path: Path, seconds: int, is_named: bool) -> None:
    code = f"import subprocess; subprocess.Popen(['sleep', '{seconds}'], start_new_session=True)"

    async def processes_left() -> tuple[ProcessExit, list[str]]:
        process = AgentProcess((sys.executable, "-c", code), tmp_path, os.environ, 10**6)
        ended = await process.ended
        await process.close()
        return ended, process.left_running

    ended, commands = asyncio.run(processes_left())
    assert ended == ProcessExit(code=0)
    assert commands == (["sleep 600"] if is_named else [])


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
