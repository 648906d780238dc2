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
READ_BYTES = 2**18
"""Bytes of output that are read at a time."""
STOP_TIMEOUT_S, POLL_INTERVAL_S = 1.0, 0.0005
"""The longest wait for a stopped process to halt, and the pause between two checks."""
STOPPED_STATES = frozenset("TtZXD")
"""Linux thread states in which a thread runs no more code, either until it is continued or forever."""
REPORT_TIMEOUT_S = 10.0
"""The longest wait for the supervisor's report after a kill."""
EXIT_NOT_STARTED = 127
"""The exit code of a command that never started, as shells use it."""


@dataclass(frozen=True)
class ProcessExit:
    """How a process exited.

    code     its exit code; None after a signal, or if its supervisor was killed
    signal   the signal that ended the process
    failed   the kernel's error number if the process could not be started
    """

    code: int | None = None
    signal: int | None = None
    failed: int | None = None


class AgentProcess:
    """One process of an agent, started on construction. Raises OSError if it cannot be started in its folder.

    Call `kill`, or await `ended`; then await `close`.

    Args:
        words: The path of the program, and its arguments.
        folder: The working folder.
        environment: All variables of the process. `AGENT_FOLDER` identifies its descendants.
        largest: The largest file that it can write, in bytes.
        patience: Seconds to wait after a kill for the supervisor's report. An agent can stop or replace its supervisor, and
            then no report comes.
        streams: Open files for its stdin, stdout and stderr, which the caller closes. Without them `output` has the end of
            stdout and stderr together, and `on_stdout` the end of stdout alone.
        reads: An open file for its stdin, if there are no `streams`.
        namespaces: Open files of the namespaces of the box that it enters.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        largest: int,
        patience: float = REPORT_TIMEOUT_S,
        streams: tuple[int, int, int] | None = None,
        reads: int = subprocess.DEVNULL,
        namespaces: Sequence[int] = (),
    ):
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[ProcessExit] = self._loop.create_future()
        self.left_running: list[str] = []
        """The commands of processes that still ran some time after the process had exited, and were killed then."""
        self.output, self.on_stdout, self.began, self.seconds = Tail(), Tail(), monotonic(), 0.0
        self._group_id, self._status_bytes, self._report_timeout_s = 0, b"", patience
        self._report_timer: asyncio.TimerHandle | None = None
        self._is_closed = False
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
        """Kill the process and all processes that it started. This may be called again, also after the process has exited."""
        self._signal(signal.SIGKILL)
        self._close_control()
        if not self.ended.done():
            self._process.send_signal(signal.SIGCONT)
            self._report_timer = self._report_timer or self._loop.call_later(self._report_timeout_s, self._end_without_report)

    def terminate(self) -> None:
        """Send SIGTERM to the process and to all processes of its session."""
        self._signal(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop the process, and return as soon as all its threads have stopped. Only one thread receives the signal. On a
        busy machine the other threads would run on until that thread is scheduled."""
        self._signal(signal.SIGSTOP)
        _wait_until_stopped(self._group_id)

    def client_process(self, theirs: int, ours: int) -> int:
        """Return the process id of the agent's process that made a TCP connection on loopback from the port `theirs` to the
        port `ours` (Linux only); else 0."""
        socket = _socket_name(theirs, ours)
        holders = (pid for pid in _marked_processes(self._mark) if socket and _has_open(pid, socket))
        return max(holders, default=0)  # the child that inherited the connection last

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its process group, if it still runs."""
        if self._group_id and not self.ended.done():
            with suppress(OSError):
                os.killpg(self._group_id, number)

    async def close(self) -> None:
        """Kill all processes of the agent that still run, and release their resources. After this returns or is interrupted,
        no process of the agent runs. This may be called again."""
        if self._is_closed:
            return
        self.kill()
        try:
            await asyncio.shield(self.ended)
        finally:
            self._is_closed = True
            self._read_errors()
            self._read_output()
            for opened in (self._status, self._errors, self._output):
                self._loop.remove_reader(opened)
                os.close(opened)
            self._process.wait()
            if self._report_timer:
                self._report_timer.cancel()
            if self.ended.done() and self.ended.result() == ProcessExit():
                for process in _marked_processes(self._mark):  # the supervisor, which kills them, is gone
                    kill_process(process)

    def _close_control(self) -> None:
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
        """Add what can be read from an open file to these tails; stop watching the file at its end."""
        with suppress(BlockingIOError):
            data = os.read(opened, READ_BYTES)
            for tail in tails:
                tail.add(data)
            if not data:
                self._loop.remove_reader(opened)

    def _read_status(self) -> None:
        """Read the supervisor's status lines: the process group's id, and at their end how the process exited."""
        data = os.read(self._status, 4096)
        self._status_bytes += data
        for line in self._status_bytes.split(b"\n"):
            kind, _, number = line.decode().partition(" ")
            if kind == "started":
                self._group_id = int(number)
        if not data:
            lines = self._status_bytes.decode().split("\n")
            self.left_running = [line.removeprefix("left ") for line in lines if line.startswith("left ")]
            self._set_exit(_exit_of(self._status_bytes.decode()))

    def _end_without_report(self) -> None:
        """Set an unknown exit, since the supervisor sent no report in time."""
        self._process.kill()
        self._set_exit(ProcessExit())

    def _set_exit(self, process_exit: ProcessExit) -> None:
        """Set how the process exited, once, and the seconds that it ran."""
        self._loop.remove_reader(self._status)
        self.seconds = monotonic() - self.began
        if not self.ended.done():
            self.ended.set_result(process_exit)


def freeze_process(process: int) -> None:
    """Stop one process of an agent, as `AgentProcess.freeze` stops all processes of an agent."""
    with suppress(OSError):
        os.kill(process, signal.SIGSTOP)
    _wait_until_stopped(process)


def kill_process(process: int) -> None:
    """Kill one process of an agent."""
    with suppress(OSError):
        os.kill(process, signal.SIGKILL)


def _wait_until_stopped(process: int) -> None:
    """Wait until no thread of the process runs, at most `STOP_TIMEOUT_S`."""
    deadline = monotonic() + STOP_TIMEOUT_S
    while process and _is_running(process) and monotonic() < deadline:
        sleep(POLL_INTERVAL_S)


def _is_running(process: int) -> bool:
    """Return whether a thread of the process still runs. Outside Linux this is unknown, and the function returns False."""
    for thread in Path(f"/proc/{process}/task").glob("*/stat"):
        with suppress(OSError):
            if thread.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] not in STOPPED_STATES:
                return True
    return False


def _exit_of(text: str) -> ProcessExit:
    """Return the exit that the last of the supervisor's status lines describes."""
    kind, _, number = text.strip().rpartition("\n")[2].partition(" ")
    if kind == "exit":
        return ProcessExit(code=int(number))
    if kind == "failed":
        return ProcessExit(code=EXIT_NOT_STARTED, failed=int(number))
    return ProcessExit(signal=int(number)) if kind == "signal" else ProcessExit()


def _marked_processes(mark: bytes) -> Iterator[int]:
    """Yield the ids of the processes with `mark`, a `NAME=VALUE`, in their environment (Linux only)."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def _socket_name(theirs: int, ours: int) -> str:
    """Return the client's socket of a loopback connection from port `theirs` to port `ours`, as `socket:[INODE]`; "" if the
    kernel lists none."""
    ends = [f"0100007F:{port:04X}" for port in (theirs, ours)]
    with suppress(OSError):
        for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            if words[1:3] == ends:
                return f"socket:[{words[9]}]"
    return ""


def _has_open(process: int, socket: str) -> bool:
    """Return whether a process has this socket open."""
    for descriptor in Path(f"/proc/{process}/fd").glob("*"):
        with suppress(OSError):
            if str(descriptor.readlink()) == socket:
                return True
    return False
