"""Sees during which functions of the agent's own code a file changes, in the one run that `bench probe --init` watches."""

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

MOST, MOST_LOOKS = 100, 50_000
"""The most functions that are told, and files that are looked at; and the most looks."""
TraceFunction = Callable[[FrameType, str, Any], Any]
HEADER = 100
"""Bytes at the beginning of an SQLite file, which counts its changes there."""


def watch_functions(door: Door) -> None:
    """Tell the gateway of each function that acts, from now on."""
    functions = ActingFunctions(door)

    def heard(event: str, arguments: Any) -> None:
        with suppress(Exception):  # it must not fail what the agent does
            if event == "sqlite3.connect" or (event == "open" and changes(arguments[1], arguments[2])):
                functions.look_at(arguments[0])

    sys.addaudithook(heard)
    threading.settrace(functions.begin)
    sys.settrace(functions.begin)


def changes(mode: Any, flags: Any) -> bool:
    """Return whether a file is opened so that it can be changed."""
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


class ActingFunctions:
    """Sees which functions of the agent's own code change a file.

    Whenever a function of this code begins or ends, it looks at the files that were opened to be changed. What has changed
    since the last look was changed by the function that ran.

    Args:
        door: Where each function is told, once for each file.
    """

    def __init__(self, door: Door):
        self._door, self._folder = door, os.path.realpath(os.getcwd())
        self._stamps = dict[str, object]()
        self._running = defaultdict[int, list[FrameType]](list)
        """Thread -> the frames of own functions, the innermost last."""
        self._of_agent, self._told, self._looks = dict[str, bool](), set[str](), 0

    def look_at(self, path: Any) -> None:
        """Look at a file from now on, which is about to be opened."""
        if isinstance(path, (str, bytes)) and len(self._stamps) < MOST:
            name = os.path.abspath(os.fsdecode(path))
            if name not in self._stamps and not name.startswith(("/dev/", "/proc/")):
                self._stamps[name] = stamp(name)

    def begin(self, frame: FrameType, _: str, __: Any) -> TraceFunction | None:
        """Hear that a function begins, for `sys.settrace`. Return what hears of its end; None for code of others."""
        if self._looks >= MOST_LOOKS or not self._is_agents(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        self._look()
        self._running[threading.get_ident()].append(frame)
        return self._end

    def _end(self, frame: FrameType, event: str, _: Any) -> TraceFunction:
        running = self._running[threading.get_ident()]
        if event == "return":
            self._look()
            if frame in running:
                del running[running.index(frame) :]
        return self._end

    def _look(self) -> None:
        self._looks += 1
        with suppress(Exception):  # it must not fail what the agent does
            self._attribute(self._running[threading.get_ident()][-1:])

    def _is_agents(self, file: str) -> bool:
        if file not in self._of_agent:
            path = os.path.realpath(file)
            self._of_agent[file] = path.startswith(f"{self._folder}{os.sep}") and "site-packages" not in path
        return self._of_agent[file]

    def _attribute(self, running: Iterable[FrameType]) -> None:
        for name in [name for name, known in [*self._stamps.items()] if stamp(name) != known]:
            self._stamps[name] = stamp(name)
            for frame in running:
                function = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)  # Python 3.10 has no qualified names
                what = json.dumps([f"{frame.f_globals.get('__name__')}:{function}", name])
                if what not in self._told and len(self._told) < MOST:
                    self._told.add(what)
                    self._door.tell({"seen": "acted", "what": what})


def stamp(name: str) -> object:
    """Return what changes with the content of a file, and of an SQLite database with each of its commits. None for a pipe or a
    device, whose opening could wait, or act."""
    try:
        if not S_ISREG(os.stat(name).st_mode):
            return None
        with open(name, "rb", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            head, at = file.read(HEADER), os.fstat(file.fileno())
        wal = os.stat(f"{name}-wal") if os.path.exists(f"{name}-wal") else None
    except OSError:
        return None
    return head, at.st_mtime_ns, at.st_size, wal and (wal.st_mtime_ns, wal.st_size)
