"""Finds the functions of the agent's own code during which a file changes, in the one run that `bench probe --init` watches."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from stat import S_ISREG
from types import FrameType
from typing import Any

from .door import Door

MAX_FILES, MAX_CHECKS = 100, 50_000
"""The most files that are checked, which also bounds the reports; and the most checks of all files."""
TraceFunction = Callable[[FrameType, str, Any], Any]
HEADER_BYTES = 100
"""Bytes at the beginning of an SQLite file, which counts its changes there."""


def watch_functions(door: Door) -> None:
    """Report from now on each function during which a file changes."""
    functions = ActingFunctions(door)

    def hook(event: str, arguments: Any) -> None:
        with suppress(Exception):  # a failure here must not reach the agent
            if event == "sqlite3.connect" or (event == "open" and opens_for_writing(arguments[1], arguments[2])):
                functions.watch_file(arguments[0])

    sys.addaudithook(hook)
    threading.settrace(functions.begin)
    sys.settrace(functions.begin)


def opens_for_writing(mode: Any, flags: Any) -> bool:
    """Return whether a file is opened for writing."""
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


class ActingFunctions:
    """Finds the functions of the agent's own code that change a file.

    Whenever such a function begins or ends, the files that were opened for writing are checked. A change since the last
    check is attributed to the function that ran.

    Args:
        door: Gets a report on each function, once for each file.
    """

    def __init__(self, door: Door):
        self._door, self._folder = door, os.path.realpath(os.getcwd())
        self._stamps = dict[str, object]()
        self._running = defaultdict[int, list[FrameType]](list)
        """Thread -> the frames of the agent's functions that run in it, the innermost last."""
        self._is_agent_file, self._reported, self._checks = dict[str, bool](), set[str](), 0

    def watch_file(self, path: Any) -> None:
        """Check a file from now on. This is called right before the file is opened."""
        if isinstance(path, (str, bytes)) and len(self._stamps) < MAX_FILES:
            name = os.path.abspath(os.fsdecode(path))
            if name not in self._stamps and not name.startswith(("/dev/", "/proc/")):
                self._stamps[name] = stamp(name)

    def begin(self, frame: FrameType, _: str, __: Any) -> TraceFunction | None:
        """Note that a function begins; a trace function of `sys.settrace`. Return the trace function that notes its end; None
        for code that is not the agent's own."""
        if self._checks >= MAX_CHECKS or not self._is_agent_code(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        self._check_files()
        self._running[threading.get_ident()].append(frame)
        return self._end

    def _end(self, frame: FrameType, event: str, _: Any) -> TraceFunction:
        """Note that a function ends; a local trace function, which returns itself."""
        running = self._running[threading.get_ident()]
        if event == "return":
            self._check_files()
            if frame in running:
                del running[running.index(frame) :]
        return self._end

    def _check_files(self) -> None:
        """Check all files, and attribute changes to the innermost function of this thread."""
        self._checks += 1
        with suppress(Exception):  # a failure here must not reach the agent
            self._attribute(self._running[threading.get_ident()][-1:])

    def _is_agent_code(self, file: str) -> bool:
        """Return whether a file is in the agent's folder, and in no installed package."""
        if file not in self._is_agent_file:
            path = os.path.realpath(file)
            self._is_agent_file[file] = path.startswith(f"{self._folder}{os.sep}") and "site-packages" not in path
        return self._is_agent_file[file]

    def _attribute(self, running: Iterable[FrameType]) -> None:
        """Report that these functions changed the files that differ from the last check."""
        for name, last_stamp in [*self._stamps.items()]:
            self._stamps[name] = stamp(name)
            for frame in running if self._stamps[name] != last_stamp else ():
                function = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)  # Python 3.10 has no qualified names
                fact = json.dumps([f"{frame.f_globals.get('__name__')}:{function}", name])
                if fact not in self._reported and len(self._reported) < MAX_FILES:
                    self._reported.add(fact)
                    self._door.tell({"seen": "acted", "what": fact})


def stamp(name: str) -> object:
    """Return a value that changes with the content of a file, and with each commit of an SQLite database. None for a pipe or
    a device, since opening it could block or have an effect."""
    try:
        if not S_ISREG(os.stat(name).st_mode):
            return None
        with open(name, "rb", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            head, status = file.read(HEADER_BYTES), os.fstat(file.fileno())
        wal = os.stat(f"{name}-wal") if os.path.exists(f"{name}-wal") else None
    except OSError:
        return None
    return head, status.st_mtime_ns, status.st_size, wal and (wal.st_mtime_ns, wal.st_size)
