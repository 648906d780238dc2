"""The code inside the sandbox: it runs the untrusted program under a trip-wire of Python's audit events.

Before this code starts, the launcher has taken every right away from the process. The code comes compiled, on standard input
with the job, so it imports only the standard library. It writes the answer, {"value": ...} or {"problem": ...}, to the file
number `CHANNEL`.
"""

from __future__ import annotations

import json
import os
import signal
import sys

TYPE_CHECKING = False  # typing would double the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

CHANNEL, STARTED = 3, 4
"""File numbers: for the answer; for the message that all is set up."""


def run(job: dict[str, Any]) -> None:
    """Run `job["program"]`, write the result of its `main`, or its exception, to CHANNEL as JSON, and end the process."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores this signal: a write beyond the limit must end the run
    report = reporter(os.write, os._exit)
    sys.path.insert(0, job["folder"])
    # Sent and closed before the untrusted code begins, so that the code can neither claim nor deny that all is set up.
    os.write(STARTED, b"started\n")
    os.close(STARTED)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    if job["tripwire"]:
        sys.addaudithook(tripwire(report, judge_of_paths(writing, job["folder"], job["readable"], job["installed"])))
    try:
        space: dict[str, Any] = {"__name__": "program"}
        exec(compile(job["program"], "program", "exec"), space)
        answer = json.dumps({"value": space["main"](job["value"])})
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: only a returned value is a result
        report(json.dumps({"problem": f"raised {type(error).__name__}: {error}"}))
    report(answer)


def reporter(write: Callable[[int, bytes], int], leave: Callable[[int], NoReturn]) -> Callable[[str], NoReturn]:
    """Return a function that writes the answer and ends the process at once. It holds its own references to `write` and
    `leave`: the untrusted code can replace the functions of modules."""
    channel = CHANNEL

    def report(text: str) -> NoReturn:
        """Write the answer and end the process."""
        remaining = text.encode()
        while remaining:
            remaining = remaining[write(channel, remaining) :]
        leave(0)

    return report


# The untrusted code can change every module, every global and every built-in function. The functions below are called while it
# runs. So they use none of these, but only constants, methods of exact types, and the variables that they close over.


def judge_of_paths(
    writing: int, folder: str, readable: tuple[str, ...], installed: tuple[str, ...]
) -> Callable[[str, tuple[Any, ...]], bool]:
    """Return a function that says whether an event opens or lists a path that the code may not use.

    writing     the flags that open a file for writing
    folder      the current folder
    readable    the folders in which files may be read
    installed   folders within these in which no file may be read: installed packages can hold data that graders use
    All folders end with a slash.
    """
    # Local names, because the code that is run can replace the built-in ones.
    kind_of, text_type, bytes_type, number_type, nothing = type, str, bytes, int, type(None)

    def is_foreign(event: str, arguments: tuple[Any, ...]) -> bool:
        """Return whether the event opens a file for writing, or uses a path that the code may not read."""
        path = arguments[0]
        kind = kind_of(path)
        if event == "open" and (arguments[2] or 0) & writing:
            return True
        if kind is number_type:  # a file that is open already
            return False
        if kind is bytes_type:
            path = path.decode("utf-8", "surrogateescape")
        elif kind is nothing:  # os.listdir() lists the current folder
            path = "."
        elif kind is not text_type:
            return True
        # The path is not resolved: that takes library code, which can be changed. No link leads out, since none can be made.
        full_path = (path if path.startswith("/") else folder + path) + "/"
        return "/../" in full_path or not full_path.startswith(readable) or full_path.startswith(installed)

    return is_foreign


def tripwire(
    report: Callable[[str], NoReturn], is_foreign: Callable[[str, tuple[Any, ...]], bool]
) -> Callable[[str, tuple[Any, ...]], None]:
    """Return an audit hook that ends the run at a forbidden event. It ends the process instead of raising an exception, which
    code could catch."""
    kind_of, text_type = type, str

    def is_forbidden(event: str, arguments: tuple[Any, ...]) -> bool:
        """Return whether the event ends the run."""
        if event in {"open", "os.listdir", "os.scandir"}:
            return is_foreign(event, arguments)
        if event == "import":
            return kind_of(arguments[0]) is not text_type or arguments[0] in {"ctypes", "_ctypes"}
        if event in {"os.putenv", "os.unsetenv", "os.walk", "os.fwalk"}:
            return False
        # fmt: off
        return event.startswith((  # one constant, which nothing can change
            "os.", "socket.", "subprocess.", "ctypes.", "fcntl.", "pty.", "shutil.", "sqlite3.", "resource.", "signal.",
            "mmap.", "gc.", "syslog.", "cpython.run_", "sys.set", "sys.monitoring.", "sys.addaudithook",
            "_thread.start_new_thread", "_posixsubprocess.fork_exec", "code.__new__",
        ))
        # fmt: on

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        """End the run with a report if the event is forbidden."""
        if is_forbidden(event, arguments):
            # The message must be the same each time, so it has only texts of the code, and no process id or folder name.
            shows_argument = event in {"open", "os.listdir", "os.scandir", "import"} and kind_of(arguments[0]) is text_type
            text = event + (" " + arguments[0].__repr__()[:100] if shows_argument else "")
            text = text.encode("ascii", "backslashreplace").decode("ascii").replace("\\", "\\\\").replace('"', '\\"')
            report('{"problem": "forbidden: ' + text + '"}')

    return hook
