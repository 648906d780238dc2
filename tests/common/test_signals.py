"""A command that was asked to stop does so in its own time, and at once when it is asked again, whatever its threads do."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys

import pytest

from bench.common.signals import STOP_SIGNALS, Stop

STUBBORN = """
import asyncio, signal, time
from bench.common.signals import Stop

async def work():
    with Stop(asyncio.get_running_loop(), lambda: print("asked", flush=True)):
        print("ready", flush=True)
        await asyncio.to_thread(time.sleep, 60)  # as a grader does

signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a script
asyncio.run(work())
"""


@pytest.mark.parametrize("asked", STOP_SIGNALS)
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


def test_a_stop_that_nobody_asked_for_leaves_the_handlers_that_it_found() -> None:
    async def unasked() -> None:
        before = [signal.getsignal(number) for number in STOP_SIGNALS]
        with Stop(asyncio.get_running_loop(), lambda: None):
            assert signal.getsignal(signal.SIGTERM) not in before
        assert [signal.getsignal(number) for number in STOP_SIGNALS] == before

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        asyncio.run(unasked())
    finally:
        signal.signal(signal.SIGTERM, before)


HUNG_UP = """
import asyncio, os, sys
from bench.common.signals import Stop

async def work():
    asked = asyncio.Event()
    with Stop(asyncio.get_running_loop(), asked.set) as stop:
        print("ready", flush=True)
        await asked.wait()
        print("asked", flush=True)
        print("stopping", file=sys.stderr, flush=True)
    return stop.by

sys.exit(asyncio.run(work()))
"""


@pytest.mark.parametrize("ignored", [False, True])
def test_a_closed_terminal_stops_a_command_and_hinders_no_word_of_it_unless_nohup_began_it(ignored: bool) -> None:
    ours, its = pty.openpty()

    def takes_terminal() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        os.setsid()
        os.close(os.open(os.ttyname(its), os.O_RDWR))

    with subprocess.Popen(
        [sys.executable, "-c", HUNG_UP],
        stdin=its,
        stdout=its,
        stderr=its,
        preexec_fn=takes_terminal,  # noqa: PLW1509
    ) as process:
        os.close(its)
        heard = b""
        while b"\n" not in heard and process.poll() is None:  # a terminal may hand a line on in parts
            heard += os.read(ours, 100)
        os.close(ours)
        if ignored:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
            process.terminate()
        code = process.wait(60)
    assert heard == b"ready\r\n"
    assert code == (signal.SIGTERM if ignored else signal.SIGHUP)
