"""Whether a program can be started: said of its file before anything runs, and of the kernel's word where one could not."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

FIRST_LINE = 1024
"""Bytes that are looked at: more than any kernel reads."""
INSTEAD = 'or put what runs it before it, as in ["sh", "run.sh"]'


def why_not(program: str, path: str) -> str:
    """Why a file would not be started, and what to do; "" where nothing speaks against it. `path` is where its interpreter
    would be looked for."""
    if os.path.isdir(program):  # noqa: PTH112  as in all of these, a file that cannot be looked at is none
        return "is a folder; name the program in it"
    if not os.access(program, os.X_OK):
        return f"is not executable; chmod +x it, {INSTEAD}"
    try:
        with Path(program).open("rb") as file:
            first, _, _ = file.read(FIRST_LINE).partition(b"\n")
    except OSError:  # what may be run need not be readable
        return ""
    if first.startswith(b"\xef\xbb\xbf#!"):
        return f"begins with a byte order mark, not with #!; save it without one, {INSTEAD}"
    return _why_not_by(first[2:].decode(errors="replace"), path) if first.startswith(b"#!") else ""


def _why_not_by(line: str, path: str) -> str:
    """The same of an interpreter, by what stands behind `#!`."""
    if "\r" in line:
        return f"has Windows line ends (CRLF), by which no interpreter of its #! line is found; save it with LF, {INSTEAD}"
    interpreter, *words = line.split() or [""]
    if not os.access(interpreter, os.X_OK):
        return f"begins with '#!{line}', and there is no program '{interpreter}'; mend that line, {INSTEAD}"
    name = next((word for word in words if word != "-S"), "")
    looked_up = Path(interpreter).name == "env" and name and not name.startswith("-") and "=" not in name
    if looked_up and not shutil.which(name, path=path):
        return f"begins with '#!{line}', and there is no program '{name}'; install it, {INSTEAD}"
    return ""


def hint(number: int) -> str:
    """What the kernel's error may mean, and what to do."""
    if number == errno.ENOEXEC:
        return f"it is no program of this machine, and no script that begins with #!; mend it, {INSTEAD}"
    if number == errno.E2BIG:
        return "its words, its task and its environment are too long together; shorten them"
    return "see to it that its file and its interpreter can be run from where it is started"
