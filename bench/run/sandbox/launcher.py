"""Start sandboxed processes, one for each request, limit their time, and report how each ended.

The launcher is a separate process, one for each process that grades. It only gives up rights and starts children, so it is
small and quick to fork. The launcher has ctypes, which its children must not have: each child takes its own rights away and
then becomes a fresh interpreter. The launcher ends when the process that it serves ends, in whatever way, and all its children
end with it.

A request is a marshalled table with four open files: standard input, printed output, returned output, and a pipe on which the
launcher reports the end as "EXIT-CODE WHY". WHY is empty if the process ended by itself. The started process waits for its job
on standard input. Its time begins with a second message, {"begin": NUMBER}, with the request's number.

This module imports only modules of the standard library that are quick to import.
"""

from __future__ import annotations

import _socket
import array
import marshal
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

from bench.run.sandbox import kernel
from bench.run.sandbox.readable import landlock_rules
from bench.run.sandbox.syscalls import EXEC_FD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_REQUEST_BYTES = 2**16
REQUEST_FILES = 4
"""The number of open files that come with a request."""
RECHECK_S = 0.1
"""Seconds until the next check of a process that does not sleep, though it has not run for all of its time."""
PARENT_CHECK_MS = 1000
"""Milliseconds between checks of whether the parent lives, if the kernel has no pidfd."""
FIRST_OWN_FILE = 10
"""The launcher's own files have at least this number. Lower numbers are free for the children."""


class Child:
    """A running process and its limits."""

    def __init__(self, process: int, status: int, limits: dict[str, Any]) -> None:
        self.process, self.status = process, status
        self.wall, self.idle = limits["wall_seconds"], limits["idle_seconds"]  # idle: None if the guard is left out
        self.waits, self.began, self.before = True, 0.0, 0.0
        self.why = ""

    def begin(self) -> None:
        """Start the time of this process."""
        self.waits, self.began, self.before = False, time.monotonic(), busy_seconds(self.process) or 0.0

    def time_left(self) -> tuple[float, str]:
        """Return the seconds until the nearest limit, at most 0 if the time is up, and the name of that limit."""
        passed = time.monotonic() - self.began
        wall = self.wall - passed
        busy = None if self.idle is None else busy_seconds(self.process)
        if busy is None:
            return wall, "wall"
        idle = self.idle - (passed - (busy - self.before))
        if idle <= 0 and not sleeps(self.process):
            idle = RECHECK_S  # time that a hypervisor takes is neither running nor waiting
        return min((wall, "wall"), (idle, "idle"))

    def end(self, why: str) -> None:
        """Kill the process and its group. `why` names the limit for the report."""
        self.why = self.why or why
        self.waits, self.began = False, time.monotonic()  # it is dying, and needs no early check
        try:
            os.killpg(self.process, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            os.kill(self.process, signal.SIGKILL)  # not yet the leader of its group, or ended and unreaped

    def reap_if_ended(self) -> bool:
        """Return whether the process has ended. If so, reap it, kill the processes of its group, and report its end."""
        if not os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process, signal.SIGKILL)  # its group's number stays its own until it is reaped
        _, status = os.waitpid(self.process, 0)
        with suppress(BrokenPipeError):
            os.write(self.status, f"{os.waitstatus_to_exitcode(status)} {self.why}".encode())
        os.close(self.status)
        return True


def busy_seconds(process: int) -> float | None:
    """Return the seconds that a process has run or waited for a processor; None if the kernel does not say."""
    try:
        with open(f"/proc/{process}/schedstat", "rb") as file:  # noqa: PTH123  pathlib would double the start
            ran, waited, _ = file.read().split()
    except (OSError, ValueError):
        return None
    return (int(ran) + int(waited)) / 1e9


def sleeps(process: int) -> bool:
    """Return whether a process waits for something other than a processor or a disk."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123  as above
            return file.read().rpartition(b")")[2].split()[0] in (b"S", b"T", b"t")
    except (OSError, IndexError):
        return False


class LauncherLoop:
    """The launcher's loop: it serves requests and ends children whose time is up."""

    def __init__(self, interpreter: str, library: str) -> None:
        self.interpreter = interpreter
        self.version = kernel.landlock_version()
        self.filters = kernel.can_filter_calls()
        self.rules = landlock_rules(library) if self.version else []
        self.children: dict[int, Child] = {}
        self.numbers: dict[int, Child] = {}
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < EXEC_FD * 4:
            resource.setrlimit(resource.RLIMIT_NOFILE, (EXEC_FD * 4 if hard < 0 else min(hard, EXEC_FD * 4), hard))
        program = os.open(interpreter, os.O_RDONLY)
        os.dup2(program, EXEC_FD, inheritable=False)
        os.close(program)
        if self.version:
            self.rules.append((EXEC_FD, kernel.READ_FILE | kernel.EXECUTE))

    def serve(self, control: _socket.socket, parent: int) -> None:
        """Serve requests until the served process ends. `parent` is a file that becomes readable when that process ends; -1 if
        the kernel cannot provide one."""
        poller, woken, served = select.poll(), wake_on_child(), os.getppid()
        poller.register(control.fileno(), select.POLLIN)
        poller.register(woken, select.POLLIN)
        pause = PARENT_CHECK_MS if parent < 0 else None
        if parent >= 0:
            os.set_inheritable(parent, False)
            poller.register(parent, select.POLLIN)
        while os.getppid() == served:
            for number, _ in poller.poll(self.end_expired() or pause):
                if number == woken:
                    os.read(woken, 4096)
                elif number == parent:
                    return
                elif number != control.fileno():  # the status file of a process: its other end has closed
                    self.children[number].end("nobody waits for it")
                    poller.unregister(number)
                elif not self.accept(control, poller):
                    return
            for number, child in list(self.children.items()):
                if child.reap_if_ended():
                    del self.children[number]
                    self.numbers = {key: other for key, other in self.numbers.items() if other is not child}
                    with suppress(KeyError):
                        poller.unregister(number)

    def end_expired(self) -> int | None:
        """End the children whose time is up. Return the milliseconds until the next check; None if no child's time runs."""
        limits = [(child, *child.time_left()) for child in self.children.values() if not child.waits]
        for child, seconds, limit_name in limits:
            if seconds <= 0:
                child.end(limit_name)
        return max(1, int(1000 * min(max(seconds, 0.01) for _, seconds, _ in limits)) + 1) if limits else None

    def accept(self, control: _socket.socket, poller: select.poll) -> bool:
        """Take the next request: start a process, or start the time of a process that runs. Return whether more requests can
        come."""
        numbers = array.array("i")
        message, extra, *_ = control.recvmsg(MAX_REQUEST_BYTES, _socket.CMSG_LEN(REQUEST_FILES * numbers.itemsize))
        if not message:
            return False
        for _level, _kind, data in extra:
            numbers.frombytes(data)
        for number in numbers:
            os.set_inheritable(number, False)
        request = marshal.loads(message)
        if "begin" in request:
            if child := self.numbers.get(request["begin"]):
                child.begin()
            return True
        launcher = os.getpid()
        process = os.fork()
        if process == 0:
            self.become_interpreter(request, numbers.tolist(), launcher)
        *files, status = numbers
        for number in files:
            os.close(number)
        limits = request["limits"] if "idle time" not in request["without"] else {**request["limits"], "idle_seconds": None}
        self.children[status] = self.numbers[request["number"]] = Child(process, status, limits)
        poller.register(status, 0)  # only reports that the other end has closed
        return True

    def become_interpreter(self, request: dict[str, Any], numbers: list[int], launcher: int) -> None:
        """In the child, give up every right and become the interpreter. Does not return."""
        try:
            os.setsid()
            stdin, printed, returned, status = numbers
            for target, number in enumerate((stdin, printed, printed, returned, status)):
                os.dup2(number, target)
            os.chdir(request["folder"])
            for kind in (signal.SIGPIPE, signal.SIGCHLD):
                signal.signal(kind, signal.SIG_DFL)
            if sys.platform != "linux":
                limit(request["limits"])
                os.execve(
                    self.interpreter, request["arguments"], dict([setting.split("=", 1) for setting in request["environment"]])
                )
            self.confine(request["folder"], request["limits"], launcher, request["without"])
            kernel.execute(EXEC_FD, request["arguments"], request["environment"])
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(70)

    def confine(self, folder: str, limits: dict[str, Any], launcher: int, without: tuple[str, ...]) -> None:
        """Set up all guards of this machine, except those that are left out."""
        kernel.set_no_new_privileges()
        if self.version:
            path = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
            kernel.restrict(self.version, [*self.rules, (path, kernel.READ_FILE | kernel.READ_FOLDER)], without)
        if "capabilities" not in without:
            kernel.drop_capabilities()
        if "parent's end" not in without:
            kernel.die_with_parent(launcher)
        if "limits" not in without:
            limit(limits)  # after Landlock, whose ruleset is an open file
        if self.filters and "system calls" not in without:
            kernel.restrict_calls()


def wake_on_child() -> int:
    """Return a file that becomes readable when a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def limit(limits: dict[str, Any]) -> None:
    """Set hard kernel limits. macOS refuses some of them."""
    cpu, memory, output, files = (limits[name] for name in ("cpu_seconds", "memory_bytes", "output_bytes", "open_files"))
    bounds = {
        "CPU": (cpu, cpu + 1),  # a signal that names the reason, then SIGKILL
        "AS": (memory, memory),
        "FSIZE": (output, output),
        "NOFILE": (files, files),
        **dict.fromkeys(("CORE", "MEMLOCK", "MSGQUEUE", "RTPRIO", "NPROC"), (0, 0)),
    }
    for name, bound in bounds.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        try:
            if kind is not None:
                resource.setrlimit(kind, bound)
        except (ValueError, OSError):
            if sys.platform == "linux":
                raise


def main() -> None:
    """Run the launcher. Standard input is the socket of requests. The arguments are the interpreter, its library, the folder to
    remove, and the number of the file that shows the end of the served process."""
    interpreter, library, folder, served = sys.argv[1:]
    while os.dup(2) < FIRST_OWN_FILE:
        pass
    control = _socket.socket(fileno=os.dup(0))
    launcher = LauncherLoop(interpreter, library)
    if sys.platform == "linux":
        kernel.make_undumpable()
    control.send(b"ready")
    try:
        launcher.serve(control, int(served))
    finally:
        for child in launcher.children.values():
            child.end("nobody waits for it")
        if os.access(folder, os.F_OK):  # the served process was killed before it removed it
            import shutil  # noqa: PLC0415  only needed here, and slow to import

            shutil.rmtree(folder, ignore_errors=True)
