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

MOST, MOST_CHECKS = 100, 50_000
"""The most functions that are told, and files that are looked at; and the most looks."""
TraceFunction = Callable[[FrameType, str, Any], Any]
HEADER = 100
"""Bytes at the beginning of an SQLite file, which counts its changes there."""


def watch_functions(door: Door) -> None:
    """Report from now on each function during which a file changes."""
    functions = ActingFunctions(door)

    def hook(event: str, arguments: Any) -> None:
        with suppress(Exception):  # it must not fail what the agent does
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
        """Thread -> the frames of own functions, the innermost last."""
        self._of_agent, self._reported, self._checks = dict[str, bool](), set[str](), 0

    def watch_file(self, path: Any) -> None:
        """Check this file from now on; it is about to be opened."""
        if isinstance(path, (str, bytes)) and len(self._stamps) < MOST:
            name = os.path.abspath(os.fsdecode(path))
            if name not in self._stamps and not name.startswith(("/dev/", "/proc/")):
                self._stamps[name] = stamp(name)

    def begin(self, frame: FrameType, _: str, __: Any) -> TraceFunction | None:
        """Note that a function begins, as `sys.settrace` requires. Return the function that notes its end; None for other
        code."""
        if self._checks >= MOST_CHECKS or not self._is_agents(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        self._check_files()
        self._running[threading.get_ident()].append(frame)
        return self._end

    def _end(self, frame: FrameType, event: str, _: Any) -> TraceFunction:
        """Note that a function ends."""
        running = self._running[threading.get_ident()]
        if event == "return":
            self._check_files()
            if frame in running:
                del running[running.index(frame) :]
        return self._end

    def _check_files(self) -> None:
        """Check the files, within a bound."""
        self._checks += 1
        with suppress(Exception):  # it must not fail what the agent does
            self._attribute(self._running[threading.get_ident()][-1:])

    def _is_agents(self, file: str) -> bool:
        """Return whether a file is in the agent's folder, and in no installed package."""
        if file not in self._of_agent:
            path = os.path.realpath(file)
            self._of_agent[file] = path.startswith(f"{self._folder}{os.sep}") and "site-packages" not in path
        return self._of_agent[file]

    def _attribute(self, running: Iterable[FrameType]) -> None:
        """Report that these functions changed the files that differ from the last check."""
        for name in [name for name, known in [*self._stamps.items()] if stamp(name) != known]:
            self._stamps[name] = stamp(name)
            for frame in running:
                function = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)  # Python 3.10 has no qualified names
                fact = json.dumps([f"{frame.f_globals.get('__name__')}:{function}", name])
                if fact not in self._reported and len(self._reported) < MOST:
                    self._reported.add(fact)
                    self._door.tell({"seen": "acted", "what": fact})


def stamp(name: str) -> object:
    """Return a value that changes with the content of a file, and with each commit of an SQLite database. None for a pipe or
    a device, since opening it could block or have an effect."""
    try:
        if not S_ISREG(os.stat(name).st_mode):
            return None
        with open(name, "rb", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            head, status = file.read(HEADER), os.fstat(file.fileno())
        wal = os.stat(f"{name}-wal") if os.path.exists(f"{name}-wal") else None
    except OSError:
        return None
    return head, status.st_mtime_ns, status.st_size, wal and (wal.st_mtime_ns, wal.st_size)
