"""Reports what running code reads: files, paths, folders, the environment, the clock, random numbers; and what it starts.

Python raises audit events when code opens or lists files, connects, or starts a process. `os.stat` and similar functions raise
none, nor does `os.environ`, so these are wrapped during a recording, and so are the clocks. At any other time nothing is
wrapped or reported; an audit hook cannot be removed, and returns at once.
"""

from __future__ import annotations

import _thread
import functools
import gc
import os
import pathlib
import random
import site
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, Protocol

from bench_code.present import IGNORED, file_value, listing_value, scan_value, status_value
from bench_code.record import CHANCE, CLOCK

STDLIB = (sysconfig.get_path("stdlib"), "<frozen")
__tracebackhide__ = True
"""pytest shows no frame of this module: a failure tells of the project's code only."""
UNSEEN = "<bench importlib._bootstrap>"
"""The file of wrapping functions. `warnings` leaves out frames of files with these words, as it does the import system's."""
OUTSIDE = ("/proc/", "/sys/", "/dev/")
PROCESSES = frozenset({"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "pty.spawn"})
SOCKETS = frozenset({"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"})
CHANGES = frozenset({"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink"})
CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "thread_time")
OF_NOW = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions of `time` that read the clock if they are called with at most this number of arguments."""
WAITING = tuple(
    os.sep.join((STDLIB[0], name))
    for name in ("logging", "asyncio", "threading", "queue", "selectors", "subprocess", "concurrent")
)
"""Parts of the standard library that read the clock in order to wait, or for the time of a log line."""
READS: dict[str, tuple[str, Callable[[str], str]]] = {
    "os.listdir": ("listing", listing_value),
    "os.scandir": ("scan", scan_value),
    "ctypes.dlopen": ("file", file_value),
}
"""Audit events, each with the kind of fact that it reads, and the function that returns the fact's value."""
FOLLOWED = frozenset({"open", "sqlite3.connect", *READS}) | CHANGES | PROCESSES | SOCKETS
"""Audit events that a listener may be told of. Most audit events are not among them: they are of imports and attributes."""
PROBES = ("stat", "lstat", "access", "readlink")
STATS = ("stat", "lstat")
RESOLVING = ("realpath", "_joinrealpath", "resolve")
QUESTIONS = frozenset({"exists", "lexists", "isfile", "isdir", "islink", "is_file", "is_dir", "is_symlink", *RESOLVING})
PATHLIB = frozenset({getattr(pathlib.Path, name).__code__.co_filename for name in ("is_file", "exists", "is_symlink", "stat")})
PATHS = PATHLIB | {os.path.exists.__code__.co_filename, os.path.islink.__code__.co_filename}
"""Files of the standard library whose functions in QUESTIONS learn of a path only whether and what it is."""
CONTENT: tuple[str, Callable[[str], str]] = ("file", file_value)
STATUS: tuple[str, Callable[[str], str]] = ("status", status_value)


class Listener(Protocol):
    """Is told what running code reads. `value` returns the value of the thing at a path, as it is then."""

    def read(self, kind: str, path: str, value: Callable[[str], str]) -> None: ...
    def wrote(self, path: str) -> None: ...
    def variable(self, name: str) -> None: ...
    def unstable(self, why: str) -> None: ...
    def seeded(self) -> None: ...


_listener: Listener | None = None
_hooked = False
_quiet = threading.local()


@contextmanager
def watching(listener: Listener) -> Iterator[None]:
    """Tell a listener what code of this process reads in the block."""
    global _listener, _hooked  # noqa: PLW0603  (an audit hook is one for the process, and stays)
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True
    kept = [(owner, name, getattr(owner, name), wrapped) for owner, name, wrapped in _wrappers(listener)]
    for owner, name, original, wrapped in kept:
        setattr(owner, name, disguised(wrapped, original))
        _replace_in_sets(original, wrapped)
    _listener = listener
    try:
        yield
    finally:
        _listener = None
        for owner, name, original, wrapped in kept:
            setattr(owner, name, original)
            _replace_in_sets(wrapped, original)


def disguised(wrapped: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that replaces another, with the other's name and signature. Warnings skip its frame, as they skip the
    import system's, so a warning is about the line that it would be about without a recording."""
    module = "os" if original.__module__ == "posix" else original.__module__
    functools.update_wrapper(wrapped, original).__module__ = module
    wrapped.__code__ = wrapped.__code__.replace(co_filename=UNSEEN)
    return wrapped


def _replace_in_sets(before: Callable[..., Any], after: Callable[..., Any]) -> None:
    """Replace a function in the sets that tell which functions of `os` support what."""
    for able in (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks):
        if before in able:
            able.remove(before)
            able.add(after)


@contextmanager
def unwatched() -> Iterator[None]:
    """Report nothing of what this thread does in the block."""
    before = getattr(_quiet, "on", False)
    _quiet.on = True
    try:
        yield
    finally:
        _quiet.on = before


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    listener = _listener
    if listener is None or event not in FOLLOWED or getattr(_quiet, "on", False):
        return
    if event == "open":
        path, mode, flags = arguments
        _report_open(listener, path, flags if isinstance(flags, int) else 0, mode)
    elif event in READS:
        _report_read(listener, *READS[event], arguments[0] or ".")
    elif event in CHANGES:
        for path in arguments[:2] if arguments[-1] in (None, -1) else ():  # else it is relative to a descriptor
            _report_write(listener, path)
    elif event == "sqlite3.connect":
        _report_open(listener, arguments[0], os.O_RDWR, None)
    elif event in PROCESSES:
        listener.unstable(f"starts a process ({event})")
    elif event in SOCKETS and not str(arguments[1:]).startswith("('/"):
        listener.unstable(f"uses a socket ({event})")


def _report_open(listener: Listener, path: object, flags: int, mode: object) -> None:
    if path in (":memory:", b":memory:"):
        return
    writes = flags & (os.O_WRONLY | os.O_RDWR) or (isinstance(mode, str) and set(mode) & set("wax+"))
    if not writes or (flags & os.O_RDWR and not flags & os.O_TRUNC) or mode == "a":
        _report_read(listener, "file", file_value, path)
    if writes:
        _report_write(listener, path)


def _report_write(listener: Listener, path: object) -> None:
    if isinstance(path, str | bytes) and _asked_by_code(sys._getframe(1), ""):
        with unwatched():
            listener.wrote(os.path.abspath(os.fsdecode(path)))


def _report_read(listener: Listener, kind: str, value: Callable[[str], str], path: object) -> None:
    if isinstance(path, int) and kind != "file":
        path = _path_of(path)
    if not isinstance(path, str | bytes | os.PathLike):
        return  # a descriptor: its opening was reported
    name = os.fsdecode(path)
    if (
        "__pycache__" in name
        or name.startswith(OUTSIDE)
        or not _asked_by_code(sys._getframe(1), kind if kind == "listing" else name)
    ):
        return
    with unwatched():
        listener.read(kind, os.path.abspath(name), value)


def _path_of(descriptor: int) -> str | None:
    """Return the path by which a descriptor was opened; None if the system does not tell."""
    try:
        with unwatched():
            return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def _asked_by_code(frame: FrameType | None, path: str) -> bool:
    """Return whether code other than pytest's asks: the first frame that is neither the standard library's nor ours decides.

    What the import system reads does not count: a module's name is a fact that covers its source and the searched folders.
    """
    modules = path.endswith((".py", "listing"))
    while frame is not None:
        file = frame.f_code.co_filename
        if modules and file.startswith("<frozen importlib"):
            outer = frame.f_back
            if frame.f_code.co_name != "get_data" or outer is None or outer.f_code.co_filename.startswith("<frozen importlib"):
                return False
        asks = _is_other_code(file)
        if asks is not None:
            return asks
        frame = frame.f_back
    return True


@cache
def _is_other_code(file: str) -> bool | None:
    """Return whether code of a file is not pytest's; None for the standard library and for this package."""
    if file.startswith((HERE, UNSEEN)) or (file.startswith(STDLIB) and not _is_installed(file)):
        return None
    return f"{os.sep}_pytest{os.sep}" not in file and f"{os.sep}pluggy{os.sep}" not in file


HERE = str(pathlib.Path(__file__).parent) + os.sep
PACKAGES = tuple(os.path.join(folder, "") for folder in (*site.getsitepackages(), site.getusersitepackages()))


def _is_installed(file: str) -> bool:
    """Return whether a file belongs to an installed package other than this one."""
    return file.startswith(PACKAGES) and not file.startswith(HERE)


def _wrappers(listener: Listener) -> Iterator[tuple[Any, str, Any]]:
    """Yield what is wrapped: the owner, the name, and the function that replaces it during a recording."""
    for name in PROBES:
        yield os, name, _probe(getattr(os, name), name in STATS, listener)
    yield os, "open", _opening(os.open, listener)
    environ = type(os.environ)
    for name in ("__getitem__", "__contains__", "__iter__", "__len__"):
        yield environ, name, _variable(getattr(environ, name), listener)
    for name in (*CLOCKS, *OF_NOW):
        yield time, name, _clock(getattr(time, name), OF_NOW.get(name), listener)
    yield _thread, "start_new_thread", _raw_thread(_thread.start_new_thread, listener)
    yield os, "urandom", _chance(os.urandom, listener)
    yield random, "_urandom", _chance(os.urandom, listener)  # the name under which `random` and `secrets` draw
    yield random.Random, "seed", _seed(random.Random.seed, listener)
    yield random, "seed", _seed_of_all(random.seed, listener)


def _probe(original: Callable[..., Any], is_stat: bool, listener: Listener) -> Callable[..., Any]:
    def probe(path: Any, *arguments: Any, **named: Any) -> Any:
        if not getattr(_quiet, "on", False):
            kind, value = STATUS if is_stat and _asks_whether(sys._getframe(1)) else CONTENT
            _report_read(listener, kind, value, _beside(path, named.get("dir_fd"), listener))
        return original(path, *arguments, **named)

    return probe


def _asks_whether(frame: FrameType | None) -> bool:
    """Return whether code learns only if there is a file, a folder or a link. `inspect` asks this of all modules."""
    if frame is not None and frame.f_code.co_filename in PATHLIB and frame.f_code.co_name in STATS:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name in QUESTIONS and frame.f_code.co_filename in PATHS


def _opening(original: Callable[..., int], listener: Listener) -> Callable[..., int]:
    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None and not getattr(_quiet, "on", False):  # the audit event does not have it
            _report_open(listener, _beside(path, dir_fd, listener), flags, None)
        return original(path, flags, mode, dir_fd=dir_fd)

    return opened


def _beside(path: Any, descriptor: int | None, listener: Listener) -> Any:
    """Return a path joined to the folder of a descriptor, if there is a descriptor."""
    if descriptor is None:
        return path
    folder = _path_of(descriptor)
    if folder is None:
        listener.unstable("reads relative to a descriptor")
        return path
    return os.path.join(folder, os.fsdecode(path))


def _variable(original: Callable[..., Any], listener: Listener) -> Callable[..., Any]:
    def variable(self: Any, *name: Any) -> Any:
        key = os.fsdecode(name[0]) if name and isinstance(name[0], str | bytes) else "*"
        if key not in IGNORED and not getattr(_quiet, "on", False):
            listener.variable(key)
        return original(self, *name)

    return variable


def _clock(original: Callable[..., Any], most: int | None, listener: Listener) -> Callable[..., Any]:
    def clock(*arguments: Any, **named: Any) -> Any:
        if _listener is not listener:  # code that was imported during a recording may still hold this function
            return original(*arguments, **named)
        asking = sys._getframe(1)
        reads = (most is None or len(arguments) <= most) and _asked_by_code(asking, "")
        if reads and not (asking.f_code.co_filename.startswith(WAITING) or _importing_installed(asking) or _collecting(asking)):
            listener.unstable(CLOCK)
        return original(*arguments, **named)

    return clock


def _chance(original: Callable[[int], bytes], listener: Listener) -> Callable[[int], bytes]:
    def urandom(size: int, /) -> bytes:
        asking = sys._getframe(1)
        if not _importing_installed(asking) and _asked_by_code(asking, ""):  # pytest draws the name of a folder that it deletes
            listener.unstable(CHANCE)
        return original(size)

    return urandom


def _raw_thread(original: Callable[..., int], listener: Listener) -> Callable[..., int]:
    def start_new_thread(*arguments: Any) -> int:
        listener.unstable("starts a thread without `threading`, whose functions are not seen")
        return original(*arguments)

    return start_new_thread


def _seed(original: Callable[..., Any], listener: Listener) -> Callable[..., Any]:
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        asking = sys._getframe(1)
        if a is None and not _is_asked_in(asking, tempfile.__file__) and not _importing_installed(asking):
            listener.unstable(CHANCE)
        original(self, a, version)

    return seed


def _seed_of_all(original: Callable[..., None], listener: Listener) -> Callable[..., None]:
    def seed(a: Any = None, version: int = 2) -> None:
        if a is None:
            listener.unstable(CHANCE)
        listener.seeded()
        original(a, version)

    return seed


def _importing_installed(frame: FrameType | None) -> bool:
    """Return whether an installed package asks while it is imported, to seed a generator or to note the time."""
    inside = False
    while frame is not None:
        file = frame.f_code.co_filename
        if inside and file.startswith("<frozen importlib"):
            return True
        if _is_installed(file):
            inside = True
        elif not file.startswith((*STDLIB, HERE, UNSEEN)):
            return False
        frame = frame.f_back
    return False


def _collecting(frame: FrameType) -> bool:
    """Return whether a callback of the garbage collector asks. It runs at any time, and its result reaches no test."""
    return any(getattr(callback, "__code__", None) is frame.f_code for callback in gc.callbacks)


def _is_asked_in(frame: FrameType | None, file: str) -> bool:
    """Return whether code of a file asks, within three frames. `tempfile` draws its names so."""
    for _ in range(3):
        if frame is None:
            return False
        if frame.f_code.co_filename == file:
            return True
        frame = frame.f_back
    return False
