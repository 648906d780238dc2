"""Reasons why a program cannot be started: from its file before the start, or from the kernel's error after it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

FIRST_LINE = 1024
"""Bytes that are read: more than any kernel reads."""
INSTEAD = 'or put what runs it before it, as in ["sh", "run.sh"]'


def why_not(program: str, path: str) -> str:
    """Return why a file cannot be started and what to do; "" if no reason is visible. Its interpreter is looked up in
    `path`."""
    if os.path.isdir(program):  # noqa: PTH112  noqa: PTH112  here and below: a file that cannot be looked at counts as absent
        return "is a folder; name the program in it"
    if not os.access(program, os.X_OK):
        return f"is not executable; chmod +x it, {INSTEAD}"
    try:
        with Path(program).open("rb") as file:
            first, _, _ = file.read(FIRST_LINE).partition(b"\n")
    except OSError:  # an executable file need not be readable
        return ""
    if first.startswith(b"\xef\xbb\xbf#!"):
        return f"begins with a byte order mark, not with #!; save it without one, {INSTEAD}"
    return _why_not_by(first[2:].decode(errors="replace"), path) if first.startswith(b"#!") else ""


def _why_not_by(line: str, path: str) -> str:
    """Return why the interpreter of a script cannot be started. `line` is the script's line after `#!`."""
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
    """Return what the kernel's error can mean, and what to do."""
    if number == errno.ENOEXEC:
        return f"it is no program of this machine, and no script that begins with #!; mend it, {INSTEAD}"
    if number == errno.E2BIG:
        return "its words, its task and its environment are too long together; shorten them"
    return "see to it that its file and its interpreter can be run from where it is started"
