"""One process of an agent, from its start to its exit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from bench.wire.tail import Tail

SUPERVISOR = Path(__file__).with_name("supervisor.py")
AT_A_TIME = 2**18
"""Bytes of output that are read at a time."""
LONGEST_STOP, LOOK_AGAIN = 1.0, 0.0005
"""Seconds: the longest wait for a stopped process to halt, and the pause between two looks."""
STOPPED = frozenset("TtZXD")
"""Linux thread states in which a thread runs no more code until it is continued, or at all."""
PATIENCE = 10.0
CANNOT_START = 127
"""The exit code of a command that never started, as shells use it."""


@dataclass(frozen=True)
class Ended:
    """The exit of a process.

    code     its exit code; None after a signal, or if its supervisor was killed
    signal   the signal that ended the process
    failed   the kernel's error number if the process could not be started
    """

    code: int | None = None
    signal: int | None = None
    failed: int | None = None


class AgentProcess:
    """One process of an agent, started on construction. Raises OSError if it cannot be started in its folder.

    Call `kill`, or await `ended`; then await `close`. `patience` is the number of seconds to wait after a kill for the
    supervisor's report. An agent can stop or replace its supervisor; the report is then given up. `streams` are open files for
    its stdin, stdout and stderr, which stay the caller's. Without them it reads the open file `reads`, and its output is kept,
    with what it wrote `on_stdout` besides. `namespaces` are open files of the box that it enters.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        largest: int,
        patience: float = PATIENCE,
        streams: tuple[int, int, int] | None = None,
        reads: int = subprocess.DEVNULL,
        namespaces: Sequence[int] = (),
    ):
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Ended] = self._loop.create_future()
        self.output, self.on_stdout, self.began, self.seconds = Tail(), Tail(), monotonic(), 0.0
        self._group, self._status_text, self._patience = 0, b"", patience
        self._no_word: asyncio.TimerHandle | None = None
        self._mark = f"AGENT_FOLDER={environment.get('AGENT_FOLDER')}".encode()
        self._status, status = os.pipe()
        control, self._control = os.pipe()
        self._output, output = os.pipe()
        self._errors, errors = os.pipe()
        box = ",".join(map(str, namespaces))
        stdin, stdout, stderr = streams or (reads, output, errors)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR), str(status), str(control), str(largest), box, *words],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=folder,
                env=dict(environment),
                pass_fds=(status, control, *namespaces),
                start_new_session=True,
            )
        except OSError:
            for ours in (self._status, self._control, self._output, self._errors):
                os.close(ours)
            raise
        finally:
            for theirs in (status, control, output, errors):
                os.close(theirs)
        readers = ((self._status, self._read_status), (self._errors, self._read_errors), (self._output, self._read_output))
        for opened, read in readers:
            os.set_blocking(opened, False)
            self._loop.add_reader(opened, read)

    def kill(self) -> None:
        """Kill the process and all processes that it started, at once. This may be called again, also after the process has
        exited."""
        self._signal(signal.SIGKILL)
        self._let_go()
        if not self.ended.done():
            self._process.send_signal(signal.SIGCONT)
            self._no_word = self._no_word or self._loop.call_later(self._patience, self._end_without_word)

    def terminate(self) -> None:
        """Send SIGTERM to the process and to all processes of its session."""
        self._signal(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop the process, and return as soon as all its threads have stopped. Only one thread receives the signal. On a
        busy machine the other threads would run on until that thread is scheduled."""
        self._signal(signal.SIGSTOP)
        _wait_until_stopped(self._group)

    def asker(self, theirs: int, ours: int) -> int:
        """Return the process id of the agent's process that made a TCP connection on loopback from the port `theirs` to the
        port `ours` (Linux only); else 0."""
        socket = _socket(theirs, ours)
        holders = (pid for pid in _marked_processes(self._mark) if socket and _holds(pid, socket))
        return max(holders, default=0)  # whoever inherited the connection last

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its session, if it still runs."""
        if self._group and not self.ended.done():
            with suppress(OSError):
                os.killpg(self._group, number)

    async def close(self) -> None:
        """Kill all processes of the agent that still run, and release their resources. After this returns or is interrupted,
        no process of the agent runs."""
        self.kill()
        try:
            await asyncio.shield(self.ended)
        finally:
            self._read_errors()
            self._read_output()
            for opened in (self._status, self._errors, self._output):
                self._loop.remove_reader(opened)
                os.close(opened)
            self._process.wait()
            if self._no_word:
                self._no_word.cancel()
            if self.ended.done() and self.ended.result() == Ended():
                _kill_marked(self._mark)

    def _let_go(self) -> None:
        """Close the control file, so that the supervisor kills the command."""
        if self._control >= 0:
            os.close(self._control)
            self._control = -1

    def _read_output(self) -> None:
        """Read the standard output of the process."""
        self._read(self._output, self.output, self.on_stdout)

    def _read_errors(self) -> None:
        """Read the standard error of the process."""
        self._read(self._errors, self.output)

    def _read(self, opened: int, *tails: Tail) -> None:
        """Read an open file into these buffers until its end."""
        with suppress(BlockingIOError):
            more = os.read(opened, AT_A_TIME)
            for tail in tails if more else ():
                tail.add(more)
            if not more:
                self._loop.remove_reader(opened)

    def _read_status(self) -> None:
        """Read the status lines of the supervisor."""
        more = os.read(self._status, 4096)
        self._status_text += more
        for line in self._status_text.split(b"\n"):
            what, _, number = line.decode().partition(" ")
            if what == "started":
                self._group = int(number)
        if not more:
            self._end(_end_of(self._status_text.decode()))

    def _end_without_word(self) -> None:
        """Set the exit of a process whose supervisor was killed."""
        self._process.kill()
        self._end(Ended())

    def _end(self, how: Ended) -> None:
        """Set how the process exited."""
        self._loop.remove_reader(self._status)
        self.seconds = monotonic() - self.began
        if not self.ended.done():
            self.ended.set_result(how)


def freeze_part(process: int) -> None:
    """Stop one process of an agent, as `AgentProcess.freeze` stops all processes of an agent."""
    with suppress(OSError):
        os.kill(process, signal.SIGSTOP)
    _wait_until_stopped(process)


def kill_part(process: int) -> None:
    """Kill one process of an agent."""
    with suppress(OSError):
        os.kill(process, signal.SIGKILL)


def _wait_until_stopped(process: int) -> None:
    """Wait until no thread of the process runs."""
    until = monotonic() + LONGEST_STOP
    while process and _runs(process) and monotonic() < until:
        sleep(LOOK_AGAIN)


def _runs(process: int) -> bool:
    """Return whether a thread of the process still runs. Outside Linux this is unknown, and the function returns False."""
    for thread in Path(f"/proc/{process}/task").glob("*/stat"):
        with suppress(OSError):
            if thread.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] not in STOPPED:
                return True
    return False


def _end_of(text: str) -> Ended:
    """Return the exit that a status line of the supervisor describes."""
    what, _, number = text.strip().rpartition("\n")[2].partition(" ")
    if what == "exit":
        return Ended(code=int(number))
    if what == "failed":
        return Ended(code=CANNOT_START, failed=int(number))
    return Ended(signal=int(number)) if what == "signal" else Ended()


def _kill_marked(mark: bytes) -> None:
    """Kill the agent's processes that have no supervisor any more."""
    for process in _marked_processes(mark):
        kill_part(process)


def _marked_processes(mark: bytes) -> Iterator[int]:
    """Yield the agent's processes, which are identified by their environment (Linux only)."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def _socket(theirs: int, ours: int) -> str:
    """Return the kernel's name of the socket at the other end of a connection to this process; "" if it is unknown."""
    ends = [f"0100007F:{port:04X}" for port in (theirs, ours)]
    with suppress(OSError):
        for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            if words[1:3] == ends:
                return f"socket:[{words[9]}]"
    return ""


def _holds(process: int, socket: str) -> bool:
    """Return whether a process has this socket open."""
    for opened in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(OSError):
            if str(opened.readlink()) == socket:
                return True
    return False
