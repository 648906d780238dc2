"""The launcher of this process (`bench.sandbox.launcher`), from the side that it serves: started once, ended, begun anew."""

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

from bench.errors import SandboxBroken
from bench.sandbox.bubblewrap import Backend, around, backend

PREFIX = "bench-sandbox-"
"""Of the folder in which one launcher's jobs have theirs."""
ABANDONED_AFTER = 60.0
"""Seconds. A younger folder may be one that is being set up."""
KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
ISOLATED = ("-P", "-s", "-S", "-B")

START_LAUNCHER = """
import sys, types
for name, path in (("bench", {package!r}), ("bench.sandbox", {room!r})):  # without what they import
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from bench.sandbox.launcher import main
main()
"""


class Ready(Protocol):
    """Something that is kept ready to be used, once."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Started:
    """What the launcher has started. `status` is a file on which its end is said; to close it is to end it. With `begin` its
    time begins."""

    status: int
    begin: Callable[[], object]


class Launcher:
    """The launcher of this process, from this side. Any thread may run something."""

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
            fcntl.flock(held, fcntl.LOCK_EX)  # as long as this process lives: nobody sweeps it
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
            leaving.callback(self._requests.close)  # which ends it, and comes first
            theirs.close()
            if not self._requests.recv(64):
                process.wait()
                complaint = read_whole(complaints).decode(errors="replace").strip().rpartition("\n")[2]
                raise SandboxBroken(f"the sandbox's launcher did not start: {complaint[:200]}")
            return process

    @property
    def process(self) -> int:
        """Its number."""
        return self._process.pid

    def runs(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End it, with all that it started, and leave nothing behind. May be called again."""
        self.rest()
        self._leave.close()

    def rest(self) -> None:
        """Keep nothing ready."""
        while self.spares:
            self.spares.popitem()[1].close()

    def start(self, script: str, request: Mapping[str, Any], files: Sequence[IO[bytes]]) -> Started:
        """Start a script of Python, which waits for what it is to do on the first of the files. Raises SandboxBroken where the
        launcher has ended."""
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
    """This process's; another if it has been ended."""
    with _ONE_AT_A_TIME:
        chosen = backend()
        if not (launcher := _launcher_of(os.getpid(), chosen)).runs():
            launcher.close()
            _launcher_of.cache_clear()
            launcher = _launcher_of(os.getpid(), chosen)
        return launcher


@cache
def _launcher_of(process: int, chosen: Backend) -> Launcher:
    """By process, since one that was forked off has to have its own."""
    made = Launcher(chosen)
    weakref.finalize(made, int)  # has weakref's hook registered first, so that it comes last: folders are gone by then
    atexit.register(lambda: made.close() if os.getpid() == process else None)
    return made


@contextmanager
def this_process() -> Iterator[int]:
    """A file by which another process sees the end of this one, also from a namespace of its own; -1 where there is none."""
    if not hasattr(os, "pidfd_open"):
        yield -1
        return
    opened = os.pidfd_open(os.getpid())
    try:
        yield opened
    finally:
        os.close(opened)


def _sweep(parent: Path) -> None:
    """Remove folders whose process was killed with its launcher: those of this user that nobody holds."""
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
    """The whole of a file that the kernel kept small."""
    file.seek(0)
    return file.read()
