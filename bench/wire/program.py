"""Reasons why a program cannot be started: from its file before the start, or from the kernel's error after it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

FIRST_LINE_BYTES = 1024
"""Bytes of a program that are read to find its `#!` line. No kernel reads more."""
REMEDY = 'or put what runs it before it, as in ["sh", "run.sh"]'


def start_problem(program: str, path: str) -> str:
    """Return why a file cannot be started and what to do; "" if no reason is visible. The interpreter of a script is looked up
    in `path`, which has the form of the variable PATH."""
    if os.path.isdir(program):  # noqa: PTH112  here and below: a file that cannot be looked at counts as absent
        return "is a folder; name the program in it"
    if not os.access(program, os.X_OK):
        return f"is not executable; chmod +x it, {REMEDY}"
    try:
        with Path(program).open("rb") as file:
            first, _, _ = file.read(FIRST_LINE_BYTES).partition(b"\n")
    except OSError:  # an executable file need not be readable
        return ""
    if first.startswith(b"\xef\xbb\xbf#!"):
        return f"begins with a byte order mark, not with #!; save it without one, {REMEDY}"
    return _interpreter_problem(first[2:].decode(errors="replace"), path) if first.startswith(b"#!") else ""


def _interpreter_problem(line: str, path: str) -> str:
    """Return why the interpreter of a script cannot be started, and what to do; "" if it can. `line` is the script's first
    line after `#!`."""
    if "\r" in line:
        return f"has Windows line ends (CRLF), by which no interpreter of its #! line is found; save it with LF, {REMEDY}"
    interpreter, *words = line.split() or [""]
    if not os.access(interpreter, os.X_OK):
        return f"begins with '#!{line}', and there is no program '{interpreter}'; mend that line, {REMEDY}"
    name = next((word for word in words if word != "-S"), "")
    looked_up = Path(interpreter).name == "env" and name and not name.startswith("-") and "=" not in name
    if looked_up and not shutil.which(name, path=path):
        return f"begins with '#!{line}', and there is no program '{name}'; install it, {REMEDY}"
    return ""


def start_hint(number: int) -> str:
    """Return what an error number of `exec` can mean, and what to do."""
    if number == errno.ENOEXEC:
        return f"it is no program of this machine, and no script that begins with #!; mend it, {REMEDY}"
    if number == errno.E2BIG:
        return "its words, its task and its environment are too long together; shorten them"
    return "see to it that its file and its interpreter can be run from where it is started"
