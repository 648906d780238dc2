"""Starts sandboxed processes, one for each request, bounds their time, and says how each ended.

A process of its own, one for each process that grades. It has a kernel's rights to give up and a child to start, and
nothing else: it is small, so that to fork it is cheap, and it has ctypes, which is what its children must not have: each
takes its own rights away and then becomes a fresh interpreter. It ends when the process that it serves does, however that
ends, and all that it started ends with it.

A request is a marshalled table with four open files: standard input, what is printed, what is returned, and a pipe on which is
said how it ended: "EXIT-CODE WHY", where WHY is empty if nobody ended it but itself. What it starts waits for its job on
standard input, and takes no time until a second message, {"begin": NUMBER}, says that the job of the request of this number
comes.

Imports the standard library only, and of it what is quick to import.
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

from bench.sandbox import kernel
from bench.sandbox.readable import rules_of
from bench.sandbox.syscalls import EXEC_FD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_REQUEST = 2**16
FILES = 4
"""How many open files come with a request."""
AGAIN = 0.1
"""Seconds until a process is looked at again that does not sleep, though it has not run for all of its time."""
WITHOUT_PIDFD = 1000
"""Milliseconds between looks at whether the parent lives, where the kernel does not tell."""
SPARE = 10
"""File numbers below are kept for the children."""


class Child:
    """A process that runs, and what it may."""

    def __init__(self, process: int, status: int, limits: dict[str, Any]) -> None:
        self.process, self.status = process, status
        self.wall, self.idle = limits["wall_seconds"], limits["idle_seconds"]  # idle: None where the guard is left out
        self.waits, self.began, self.before = True, 0.0, 0.0
        self.why = ""

    def begin(self) -> None:
        """Its time begins."""
        self.waits, self.began, self.before = False, time.monotonic(), busy_seconds(self.process) or 0.0

    def left(self) -> tuple[float, str]:
        """Seconds until it must be looked at again, none if its time is up, and which bound is the nearest."""
        passed = time.monotonic() - self.began
        wall = self.wall - passed
        busy = None if self.idle is None else busy_seconds(self.process)
        if busy is None:
            return wall, "wall"
        idle = self.idle - (passed - (busy - self.before))
        if idle <= 0 and not sleeps(self.process):
            idle = AGAIN  # what a hypervisor takes of a processor's time is neither running nor waiting
        return min((wall, "wall"), (idle, "idle"))

    def end(self, why: str) -> None:
        self.why = self.why or why
        self.waits, self.began = False, time.monotonic()  # it is dying, and need not be looked at soon
        try:
            os.killpg(self.process, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            os.kill(self.process, signal.SIGKILL)  # not yet the leader of its group, or ended and unreaped

    def ended(self) -> bool:
        """Whether it has ended; then it is reaped, with all that it may have left behind, and its end is told."""
        if not os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process, signal.SIGKILL)  # it led its group, whose number is its own until it is reaped
        _, status = os.waitpid(self.process, 0)
        with suppress(BrokenPipeError):
            os.write(self.status, f"{os.waitstatus_to_exitcode(status)} {self.why}".encode())
        os.close(self.status)
        return True


def busy_seconds(process: int) -> float | None:
    """What a process has run, and waited for a processor; None where the kernel does not say."""
    try:
        with open(f"/proc/{process}/schedstat", "rb") as file:  # noqa: PTH123  pathlib would double the start
            ran, waited, _ = file.read().split()
    except (OSError, ValueError):
        return None
    return (int(ran) + int(waited)) / 1e9


def sleeps(process: int) -> bool:
    """Whether it waits for something else than a processor or a disk."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123  as above
            return file.read().rpartition(b")")[2].split()[0] in (b"S", b"T", b"t")
    except (OSError, IndexError):
        return False


class LauncherLoop:
    def __init__(self, interpreter: str, library: str) -> None:
        self.interpreter = interpreter
        self.version = kernel.landlock_version()
        self.filters = kernel.can_filter_calls()
        self.rules = rules_of(library) if self.version else []
        self.children: dict[int, Child] = {}
        self.numbers: dict[int, Child] = {}
        most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most < EXEC_FD * 4:
            resource.setrlimit(resource.RLIMIT_NOFILE, (EXEC_FD * 4 if hard < 0 else min(hard, EXEC_FD * 4), hard))
        opened = os.open(interpreter, os.O_RDONLY)
        os.dup2(opened, EXEC_FD, inheritable=False)
        os.close(opened)
        if self.version:
            self.rules.append((EXEC_FD, kernel.READ_FILE | kernel.EXECUTE))

    def serve(self, control: _socket.socket, parent: int) -> None:
        """Until nobody is there to ask. `parent` is a file that can be read when the process that is served has ended; -1 where
        the kernel has none such."""
        poller, woken, served = select.poll(), wake_on_child(), os.getppid()
        poller.register(control.fileno(), select.POLLIN)
        poller.register(woken, select.POLLIN)
        pause = WITHOUT_PIDFD if parent < 0 else None
        if parent >= 0:
            os.set_inheritable(parent, False)
            poller.register(parent, select.POLLIN)
        while os.getppid() == served:
            for number, _ in poller.poll(self.pause() or pause):
                if number == woken:
                    os.read(woken, 4096)
                elif number == parent:
                    return
                elif number != control.fileno():
                    self.children[number].end("nobody waits for it")
                    poller.unregister(number)
                elif not self.accept(control, poller):
                    return
            for number, child in list(self.children.items()):
                if child.ended():
                    del self.children[number]
                    self.numbers = {known: other for known, other in self.numbers.items() if other is not child}
                    with suppress(KeyError):
                        poller.unregister(number)

    def pause(self) -> int | None:
        """Milliseconds until a child's time may be up; ends those whose time is."""
        bounds = [(child, *child.left()) for child in self.children.values() if not child.waits]
        for child, left, why in bounds:
            if left <= 0:
                child.end(why)
        return max(1, int(1000 * min(max(left, 0.01) for _, left, _ in bounds)) + 1) if bounds else None

    def accept(self, control: _socket.socket, poller: select.poll) -> bool:
        """Start what the next request asks for, or let one begin; whether there will be more."""
        numbers = array.array("i")
        message, extra, *_ = control.recvmsg(LONGEST_REQUEST, _socket.CMSG_LEN(FILES * numbers.itemsize))
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
            self.become(request, numbers.tolist(), launcher)
        *files, status = numbers
        for number in files:
            os.close(number)
        limits = request["limits"] if "idle time" not in request["without"] else {**request["limits"], "idle_seconds": None}
        self.children[status] = self.numbers[request["number"]] = Child(process, status, limits)
        poller.register(status, 0)  # tells only that the other end has gone
        return True

    def become(self, request: dict[str, Any], numbers: list[int], launcher: int) -> None:
        """In the child: give up every right, and become the interpreter. Does not return."""
        try:
            os.setsid()
            given, printed, returned, status = numbers
            for place, number in enumerate((given, printed, printed, returned, status)):
                os.dup2(number, place)
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
        """All guards that this machine has, but those that are to be left out."""
        kernel.gain_nothing()
        if self.version:
            opened = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
            kernel.restrict(self.version, [*self.rules, (opened, kernel.READ_FILE | kernel.READ_FOLDER)], without)
        if "capabilities" not in without:
            kernel.drop_capabilities()
        if "parent's end" not in without:
            kernel.end_with(launcher)
        if "limits" not in without:
            limit(limits)  # not before: a ruleset is an open file
        if self.filters and "system calls" not in without:
            kernel.restrict_calls()


def wake_on_child() -> int:
    """A file that can be read when a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def limit(limits: dict[str, Any]) -> None:
    """Kernel limits, hard ones. macOS refuses some of them."""
    cpu, memory, output, files = (limits[name] for name in ("cpu_seconds", "memory_bytes", "output_bytes", "open_files"))
    bounds = {
        "CPU": (cpu, cpu + 1),  # a signal that names the reason, then the one that cannot be ignored
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
    """Started with the socket of requests as standard input; arguments: interpreter, its library, the folder to leave clean,
    the number of the file by which the end of the process that is served is seen."""
    interpreter, library, folder, served = sys.argv[1:]
    while os.dup(2) < SPARE:
        pass
    control = _socket.socket(fileno=os.dup(0))
    launcher = LauncherLoop(interpreter, library)
    if sys.platform == "linux":
        kernel.be_closed()
    control.send(b"ready")
    try:
        launcher.serve(control, int(served))
    finally:
        for child in launcher.children.values():
            child.end("nobody waits for it")
        if os.access(folder, os.F_OK):  # who was served has been killed, else it had removed it
            import shutil  # noqa: PLC0415  nobody else needs it, and it is slow to import

            shutil.rmtree(folder, ignore_errors=True)
