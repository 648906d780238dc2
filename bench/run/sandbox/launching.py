"""Start the launcher of this process (`bench.run.sandbox.launcher`), end it, and start it again."""

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
from bench.run.sandbox.bubblewrap import Backend, backend, wrapping_command

PREFIX = "bench-sandbox-"
"""The prefix of the folder that holds one launcher's job folders."""
MIN_ABANDONED_AGE_S = 60.0
"""The age in seconds from which an unlocked folder counts as abandoned. A younger folder may still be in use by a start."""
SOCKET_KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
ISOLATION_OPTIONS = ("-P", "-s", "-S", "-B")

START_LAUNCHER = """
import sys, types
for name, path in (("bench", {package!r}), ("bench.run.sandbox", {room!r})):  # without what they import
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from bench.run.sandbox.launcher import main
main()
"""


class Spare(Protocol):
    """A resource that is kept ready for one use."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class StartedProcess:
    """A process that the launcher started. Its end is reported on the file `status`; closing this file ends the process.
    `begin` starts its time."""

    status: int
    begin: Callable[[], object]


class Launcher:
    """The launcher of this process, seen from this process. Any thread can use it."""

    def __init__(self, backend: Backend = "") -> None:
        self._backend, self._numbers = backend, itertools.count()
        self.spares: dict[object, Spare] = {}
        self._interpreter = os.path.realpath(sys.executable)
        _remove_abandoned_folders(Path(tempfile.gettempdir()))
        with ExitStack() as cleanup:
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
            cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
            folder_fd = os.open(self.folder, os.O_RDONLY)
            cleanup.callback(os.close, folder_fd)
            fcntl.flock(folder_fd, fcntl.LOCK_EX)  # while this process lives, nobody sweeps it
            self._requests, launcher_socket = socket.socketpair(socket.AF_UNIX, SOCKET_KIND)
            with launcher_socket:
                self._process = self._start(launcher_socket, cleanup)
            self._leave = cleanup.pop_all()

    def _start(self, launcher_socket: socket.socket, cleanup: ExitStack) -> subprocess.Popen[bytes]:
        """Start the launcher's process, and wait for its first message. Raises SandboxBroken if the process does not start."""
        room, library = Path(__file__).resolve().parent, Path(os.__file__).resolve().parent
        start = START_LAUNCHER.format(package=str(room.parent), room=str(room))
        cleanup.callback(self._requests.close)
        words = (self._interpreter, str(library), str(self.folder))
        wall = wrapping_command(self._interpreter, library, room, self.folder) if self._backend else []
        with tempfile.TemporaryFile() as complaints, this_process() as served:
            process = subprocess.Popen(
                [*wall, self._interpreter, *ISOLATION_OPTIONS, "-c", start, *words, str(served)],
                env={"PATH": os.defpath} if wall else {},
                cwd="/",
                stdin=launcher_socket.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                start_new_session=True,
                pass_fds=[served] if served >= 0 else [],
            )
            cleanup.callback(process.wait)
            cleanup.callback(self._requests.close)  # closing it ends the launcher; the last callback is called first
            launcher_socket.close()
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
        """End the launcher with all processes that it started, and remove its files. It can be called again."""
        self.close_spares()
        self._leave.close()

    def close_spares(self) -> None:
        """Close all resources that are kept ready."""
        while self.spares:
            self.spares.popitem()[1].close()

    def start(self, script: str, request: Mapping[str, Any], files: Sequence[IO[bytes]]) -> StartedProcess:
        """Start a Python script, which waits for its job on the first of the files. Raises SandboxBroken if the launcher has
        ended."""
        number = next(self._numbers)
        request = {**request, "number": number, "arguments": [self._interpreter, *ISOLATION_OPTIONS, "-c", script]}
        reading, writing = os.pipe()
        try:
            with _launcher_errors():
                socket.send_fds(self._requests, [marshal.dumps(request)], [*(file.fileno() for file in files), writing])
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return StartedProcess(reading, lambda: self._begin(number))

    def _begin(self, number: int) -> None:
        with _launcher_errors():
            self._requests.send(marshal.dumps({"begin": number}))


@contextmanager
def _launcher_errors() -> Iterator[None]:
    """Turn a broken connection to the launcher into SandboxBroken."""
    try:
        yield
    except ConnectionError as error:
        raise SandboxBroken("the sandbox's launcher has ended") from error


_LAUNCHER_LOCK = threading.Lock()


def launcher() -> Launcher:
    """Return this process's launcher; a new launcher if the old one has ended."""
    with _LAUNCHER_LOCK:
        backend_name = backend()
        if not (launcher := _launcher_of(os.getpid(), backend_name)).runs():
            launcher.close()
            _launcher_of.cache_clear()
            launcher = _launcher_of(os.getpid(), backend_name)
        return launcher


@cache
def _launcher_of(process: int, backend_name: Backend) -> Launcher:
    """Return the launcher of the process with this id, which is made at the first call: a forked process needs its own."""
    launcher = Launcher(backend_name)
    weakref.finalize(launcher, int)  # registers weakref's hook first, so that it runs last: folders are gone by then
    atexit.register(lambda: launcher.close() if os.getpid() == process else None)
    return launcher


@contextmanager
def this_process() -> Iterator[int]:
    """Yield the number of a file that another process, also in another namespace, can watch to see this process end; -1 if the
    system has no such files."""
    if not hasattr(os, "pidfd_open"):
        yield -1
        return
    process_file = os.pidfd_open(os.getpid())
    try:
        yield process_file
    finally:
        os.close(process_file)


def _remove_abandoned_folders(parent: Path) -> None:
    """Remove the folders of this user's processes that were killed with their launcher. No process holds a lock on these
    folders."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            folder_file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # another user's, or no folder
        try:
            stat = os.fstat(folder_file)
            if stat.st_uid != os.geteuid() or time.time() - stat.st_mtime < MIN_ABANDONED_AGE_S:
                continue
            fcntl.flock(folder_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass  # locked: its process lives
        finally:
            os.close(folder_file)


def read_whole(file: IO[bytes]) -> bytes:
    """Return the content of a file that the kernel limits to a small size."""
    file.seek(0)
    return file.read()
