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
from typing import Any

STANDARD = (sysconfig.get_path("stdlib"), "<frozen")
HERE = str(Path(__file__).parent) + os.sep
TESTERS = tuple(f"{os.sep}{name}{os.sep}" for name in ("_pytest", "pluggy", "hypothesis"))
"""Packages that read sources for themselves: to show them, and to draw examples by their constants."""
OF_TESTS = f"{os.sep}_pytest{os.sep}_py{os.sep}"
"""What `tmpdir` is made of. It reads and writes for the test that asks it."""
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


_listener: Any = None
_is_hooked = False


@contextmanager
def watching(listener: Any) -> Iterator[None]:
    """Tell a listener what code of this process does in the block, by its `used`, `looked_at` and `started`."""
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
    if _listener is None or event not in FOLLOWED or (event == "object.__getattr__" and arguments[1] != "__code__"):
        return
    frame = sys._getframe(1)
    if not _is_asked(frame):
        return
    if event == "object.__getattr__":
        if not (frame.f_code.co_filename.startswith(STANDARD[0]) and frame.f_code.co_name in SIGNATURES):
            _listener.looked_at(arguments[0])
    elif event in PROCESSES:
        _listener.started(event, str(arguments[:2]))
    else:
        _, mode, flags = arguments if event == "open" else ("", "+", 0)
        does_write = bool({*str(mode or "")} & {*"wax+"} or (isinstance(flags, int) and flags & WRITES))
        paths = (path for path in arguments[: 2 if event in CHANGES else 1] if isinstance(path, str | bytes | os.PathLike))
        for name in (os.path.abspath(os.fsdecode(path)) for path in paths):
            if not name.startswith(OUTSIDE) and "__pycache__" not in name:
                _listener.used(name, not does_write or "+" in str(mode), does_write)


def _is_asked(frame: FrameType | None) -> bool:
    """Return whether code other than pytest's asks: the first frame decides that is neither the standard library's nor ours."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(HERE):
            return False
        if OF_TESTS not in file and (not file.startswith(STANDARD) or any(each in file for each in PACKAGES)):
            return not any(each in file for each in TESTERS)
        frame = frame.f_back
    return False


def count_of_processes() -> str:
    """Return how many processes `multiprocessing` has started, which raises no audit event."""
    return repr(getattr(sys.modules.get("multiprocessing.process"), "_process_counter", ""))
