"""The launcher of this process (`bench.run.sandbox.launcher`), from the served side: started once, ended, started again."""

from __future__ import annotations

import atexit
import fcntl
import itertools
import marshal
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol

from bench.common.errors import SandboxBroken
from bench.run.sandbox.bubblewrap import Backend, around, backend

PREFIX = "bench-sandbox-"
"""The prefix of the folder that holds one launcher's job folders."""
ABANDONED_AFTER = 60.0
"""Seconds. A younger folder can be one that is being set up."""
KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
ISOLATED = ("-P", "-s", "-S", "-B")

START_LAUNCHER = """
import sys, types
for name, path in (("bench", {package!r}), ("bench.run.sandbox", {room!r})):  # without what they import
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from bench.run.sandbox.launcher import main
main()
"""


class Ready(Protocol):
    """Something that is kept ready to be used once."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Started:
    """A process that the launcher started. Its end is reported on the file `status`; closing this file ends the process.
    `begin` begins its time."""

    status: int
    begin: Callable[[], object]


class Launcher:
    """The launcher of this process, from this side. Any thread can use it."""

    def __init__(self, backend: Backend = "") -> None:
        self._backend, self._numbers = backend, itertools.count()
        self.spares: dict[object, Ready] = {}
        self._interpreter = os.path.realpath(sys.executable)
        _sweep(Path(tempfile.gettempdir()))
        with ExitStack() as leaving:
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
            leaving.callback(shutil.rmtree, self.folder, ignore_errors=True)
            held = os.open(self.folder, os.O_RDONLY)
            leaving.callback(os.close, held)
            fcntl.flock(held, fcntl.LOCK_EX)  # while this process lives, nobody sweeps it
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, KIND)
            with theirs:
                self._process = self._start(theirs, leaving)
            self._leave = leaving.pop_all()

    def _start(self, theirs: socket.socket, leaving: ExitStack) -> subprocess.Popen[bytes]:
        room, library = Path(__file__).resolve().parent, Path(os.__file__).resolve().parent
        start = START_LAUNCHER.format(package=str(room.parent), room=str(room))
        leaving.callback(self._requests.close)
        words = (self._interpreter, str(library), str(self.folder))
        wall = around(self._interpreter, library, room, self.folder) if self._backend else []
        with tempfile.TemporaryFile() as complaints, this_process() as served:
            process = subprocess.Popen(
                [*wall, self._interpreter, *ISOLATED, "-c", start, *words, str(served)],
                env={"PATH": os.defpath} if wall else {},
                cwd="/",
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                start_new_session=True,
                pass_fds=[served] if served >= 0 else [],
            )
            leaving.callback(process.wait)
            leaving.callback(self._requests.close)  # this ends it, and comes first
            theirs.close()
            if not self._requests.recv(64):
                process.wait()
                complaint = read_whole(complaints).decode(errors="replace").strip().rpartition("\n")[2]
                raise SandboxBroken(f"the sandbox's launcher did not start: {complaint[:200]}")
            return process

    @property
    def process(self) -> int:
        """The launcher's process id."""
        return self._process.pid

    def runs(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the launcher with all that it started, and remove its files. Can be called again."""
        self.rest()
        self._leave.close()

    def rest(self) -> None:
        """Close all that is kept ready."""
        while self.spares:
            self.spares.popitem()[1].close()

    def start(self, script: str, request: Mapping[str, Any], files: Sequence[IO[bytes]]) -> Started:
        """Start a Python script, which waits for its job on the first of the files. Raises SandboxBroken if the launcher has
        ended."""
        number = next(self._numbers)
        request = {**request, "number": number, "arguments": [self._interpreter, *ISOLATED, "-c", script]}
        reading, writing = os.pipe()
        try:
            with _saying_that_it_has_ended():
                socket.send_fds(self._requests, [marshal.dumps(request)], [*(file.fileno() for file in files), writing])
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return Started(reading, lambda: self._begin(number))

    def _begin(self, number: int) -> None:
        with _saying_that_it_has_ended():
            self._requests.send(marshal.dumps({"begin": number}))


@contextmanager
def _saying_that_it_has_ended() -> Iterator[None]:
    try:
        yield
    except ConnectionError as error:
        raise SandboxBroken("the sandbox's launcher has ended") from error


_ONE_AT_A_TIME = threading.Lock()


def launcher() -> Launcher:
    """Return this process's launcher; a new one if it has ended."""
    with _ONE_AT_A_TIME:
        chosen = backend()
        if not (launcher := _launcher_of(os.getpid(), chosen)).runs():
            launcher.close()
            _launcher_of.cache_clear()
            launcher = _launcher_of(os.getpid(), chosen)
        return launcher


@cache
def _launcher_of(process: int, chosen: Backend) -> Launcher:
    """Make one launcher for each process, since a forked process needs its own."""
    made = Launcher(chosen)
    weakref.finalize(made, int)  # registers weakref's hook first, so that it runs last: folders are gone by then
    atexit.register(lambda: made.close() if os.getpid() == process else None)
    return made


@contextmanager
def this_process() -> Iterator[int]:
    """Give a file by which another process sees this one end, also from another namespace; -1 if the system has none."""
    if not hasattr(os, "pidfd_open"):
        yield -1
        return
    opened = os.pidfd_open(os.getpid())
    try:
        yield opened
    finally:
        os.close(opened)


def _sweep(parent: Path) -> None:
    """Remove the folders of this user's processes that were killed with their launcher: those that nobody holds."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # another user's, or no folder
        try:
            stat = os.fstat(opened)
            if stat.st_uid != os.geteuid() or time.time() - stat.st_mtime < ABANDONED_AFTER:
                continue
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass  # held: its process lives
        finally:
            os.close(opened)


def read_whole(file: IO[bytes]) -> bytes:
    """Return the content of a file that the kernel keeps small."""
    file.seek(0)
    return file.read()
