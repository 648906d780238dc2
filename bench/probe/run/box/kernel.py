"""Linux system calls for namespaces and mounts, for which Python has no functions before 3.12, or none at all."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NEW_USER, NEW_MOUNTS, NEW_IPC, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x00020000, 0x08000000, 0x20000000, 0x40000000
OWN_WORKING_FOLDER = 0x00000200
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_DETACH = 2
_Attributes = ctypes.c_uint64 * 4
_libc = ctypes.CDLL(None, use_errno=True)


def unshare(kinds: int) -> None:
    """Move this process into new namespaces of these kinds. Raises OSError."""
    _check(_libc.unshare(kinds), "unshare")


def enter(namespace: int) -> None:
    """Enter a namespace, given an open file of it. Raises OSError."""
    _check(_libc.setns(namespace, 0), "setns")


def mount(source: str, target: Path | str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system. Raises OSError with the target's path."""
    words = [os.fsencode(word) or None for word in (source, str(target), kind)]
    result = _libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options) or None)
    _check(result, f"mount of {kind or 'a folder'} at {target}")


def bind(source: Path | str, target: Path | str) -> None:
    """Mount a file or folder at a second path. Raises OSError."""
    mount(str(source), target, flags=BIND)


def unmount(path: Path | str) -> None:
    """Unmount the file system at a path. Raises OSError."""
    _check(_libc.umount2(os.fsencode(str(path)), _DETACH), f"umount of {path}")


def set_read_only(path: Path | str, *, is_read_only: bool, recursive: bool = False) -> None:
    """Make a mount read-only, or writable. `recursive`: all mounts below it too. Raises OSError."""
    attributes = _Attributes(READ_ONLY if is_read_only else 0, 0 if is_read_only else READ_ONLY, 0, 0)
    flags, place = _AT_RECURSIVE if recursive else 0, os.fsencode(str(path))
    result = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, place, flags, ctypes.byref(attributes), ctypes.sizeof(attributes))
    _check(result, f"mount_setattr at {path}")


def _check(result: int, call: str) -> None:
    """Raise OSError if a system call failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} ({call})")
