"""What befalls a command from within: it is killed at a certain write, or a disk refuses that."""

from __future__ import annotations

import ctypes
import errno
import functools
import itertools
import os
import signal
import stat
import struct
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

CAPABILITIES_VERSION = 0x20080522
OVERRIDES = 1 << 1 | 1 << 2
Sabotage = Callable[[], None]
"""Called in the command's own process, before it begins."""


def killed_at(call: str, number: int, share: float = 0.0) -> Sabotage:
    """SIGKILL at the write, replace or truncation of this number, of which such a share of the bytes was still written."""
    return functools.partial(_at, call, number, share, None)


def refused_at(number: int, error: int = errno.ENOSPC, share: float = 0.5) -> Sabotage:
    """The write of this number to a file ends in this error after such a share of its bytes; so do all after it."""
    return functools.partial(_at, "write", number, share, error)


def _at(call: str, number: int, share: float, error: int | None) -> None:
    real, counted = getattr(os, call), itertools.count(1)

    def sabotaged(*arguments: object) -> object:
        if not _concerns_a_file(arguments[0]) or (now := next(counted)) < number:
            return real(*arguments)
        if now == number and call == "write":
            file, content = arguments
            assert isinstance(content, bytes)
            real(file, content[: int(len(content) * share)])
        if error is None:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(error, os.strerror(error or 0))

    setattr(os, call, sabotaged)


def _concerns_a_file(named: object) -> bool:
    return not isinstance(named, int) or stat.S_ISREG(os.fstat(named).st_mode)


def clock_set_back() -> None:
    """The wall clock shows an hour of 1971."""
    from bench.record import provenance  # noqa: PLC0415  # in the command's own process

    class SetBack(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> SetBack:  # noqa: ARG003
            return cls(1971, 1, 1, tzinfo=UTC)

    vars(provenance)["datetime"] = SetBack


def without_privilege() -> None:
    """Files that are read-only are so for root, too: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH are given up (capset(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = struct.pack("Ii", CAPABILITIES_VERSION, 0), ctypes.create_string_buffer(24)
    if libc.capget(header, sets):
        raise OSError(ctypes.get_errno(), "capget")
    effective, permitted, *others = struct.unpack("6I", sets.raw)
    kept = struct.pack("6I", effective & ~OVERRIDES, permitted & ~OVERRIDES, *others)
    if libc.capset(header, kept):
        raise OSError(ctypes.get_errno(), "capset")
