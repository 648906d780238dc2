"""Sees by Python's audit events which files code reads and writes, which functions it looks at, and what it starts.

An audit hook cannot be removed. It does nothing where nobody listens.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

STANDARD = (sysconfig.get_path("stdlib"), "<frozen")
HERE = str(Path(__file__).parent) + os.sep
TESTERS = tuple(f"{os.sep}{name}{os.sep}" for name in ("_pytest", "pluggy", "hypothesis"))
"""Packages that read sources for themselves: to show them, and to draw examples by their constants."""
PACKAGES = ("site-packages", "dist-packages")
OUTSIDE = ("/proc/", "/sys/", "/dev/", sys.prefix + os.sep, sys.base_prefix + os.sep)
PROCESSES = frozenset({"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "pty.spawn"})
CHANGES = frozenset({"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink"})
FOLLOWED = frozenset({"open", "sqlite3.connect", "object.__getattr__", *CHANGES, *PROCESSES})
SIGNATURES = frozenset(
    {"_signature_from_function", "_signature_is_functionlike", "_has_code_flag", "overload", "_is_async_obj", "_is_async_func"}
)
"""Functions of `inspect`, `typing` and `unittest.mock` that ask a function's code for what stands outside of its body."""
WRITES = os.O_WRONLY | os.O_RDWR


class Listener(Protocol):
    """Is told what running code does."""

    def read(self, path: str) -> None: ...
    def wrote(self, path: str) -> None: ...
    def looked_at(self, function: Any) -> None: ...
    def started(self, event: str, words: str) -> None: ...


_listener: Listener | None = None
_is_hooked = False


@contextmanager
def watching(listener: Listener) -> Iterator[None]:
    """Tell a listener what code of this process does in the block."""
    global _listener, _is_hooked  # noqa: PLW0603  (an audit hook is one for the process, and stays)
    if not _is_hooked:
        sys.addaudithook(_audit)
        _is_hooked = True
    _listener = listener
    try:
        yield
    finally:
        _listener = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    listener = _listener
    if listener is None or event not in FOLLOWED:
        return
    if event == "object.__getattr__":
        frame = sys._getframe(1)
        if arguments[1] == "__code__" and not _asks_for_signature(frame) and _is_asked(frame):
            listener.looked_at(arguments[0])
    elif event in PROCESSES:
        if _is_asked(sys._getframe(1)):
            listener.started(event, str(arguments[:2]))
    elif _is_asked(sys._getframe(1)):
        _report_paths(listener, event, arguments)


def _report_paths(listener: Listener, event: str, arguments: tuple[Any, ...]) -> None:
    does_write, paths = True, arguments[: 2 if event in CHANGES else 1]
    if event == "open":
        _, mode, flags = arguments
        does_write = bool({*str(mode or "")} & {*"wax+"} or (isinstance(flags, int) and flags & WRITES))
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike):
            name = os.path.abspath(os.fsdecode(path))
            if not name.startswith(OUTSIDE) and "__pycache__" not in name:
                (listener.wrote if does_write else listener.read)(name)


def _asks_for_signature(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(STANDARD[0]) and frame.f_code.co_name in SIGNATURES


def _is_asked(frame: FrameType | None) -> bool:
    """Return whether code other than pytest's asks: the first frame decides that is neither the standard library's nor ours."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(HERE):
            return False
        if not file.startswith(STANDARD) or any(each in file for each in PACKAGES):
            return not any(each in file for each in TESTERS)
        frame = frame.f_back
    return False
