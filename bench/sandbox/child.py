"""The inside of the sandbox: gives up every right, then runs the untrusted program. Started by `bench.sandbox` alone.

It is run as a script by an isolated interpreter and therefore imports the standard library only. The job comes as JSON on
standard input; the answer goes, as {"value": ...} or {"problem": ...}, to the file number that the job names.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn

SHARED_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")

# Audit events that end the run. Of the "os." events only the harmless ones are let through; reading is judged by path.
FORBIDDEN = (
    "os.",
    "socket.",
    "subprocess.",
    "ctypes.",
    "fcntl.",
    "pty.",
    "shutil.",
    "sqlite3.",
    "resource.",
    "signal.",
    "mmap.",
)
FORBIDDEN_EVENTS = frozenset({"_thread.start_new_thread", "_posixsubprocess.fork_exec", "code.__new__", "sys.settrace"})
HARMLESS_EVENTS = frozenset({"os.putenv", "os.unsetenv", "os.walk", "os.fwalk"})
READING_EVENTS = frozenset({"open", "os.listdir", "os.scandir"})
INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
"""Packages that may lie in the interpreter's library: data that grades can be among them."""
FORBIDDEN_IMPORTS = frozenset({"ctypes", "_ctypes"})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# System call numbers, one column for each machine; -1 where it has none.
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
FORBIDDEN_CALLS = {
    "clone": (56, 220),
    "fork": (57, -1),
    "vfork": (58, -1),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "truncate": (76, 45),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
}
# A file can be told to signal any process of the user when it becomes ready: these set to whom, which signal, and when.
SIGNALLING = {
    "fcntl": ((72, 25), (8, 10, 15, 1024, 1026)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
    "ioctl": ((16, 29), (0x5452, 0x8901, 0x8902)),  # FIOASYNC, FIOSETOWN, SIOCSPGRP
}


def main() -> None:
    job = json.load(sys.stdin)
    readable = (job["folder"], job["library"])
    report = reporter(job["channel"])
    limit(job["limits"])
    if sys.platform == "linux":
        confine(readable)
    forget("ctypes", "_ctypes")
    sys.path.insert(0, job["folder"])
    # Said and closed before the untrusted code begins, so that it can neither claim nor take back that all is set up.
    os.write(job["started"], b"started")
    os.close(job["started"])
    sys.addaudithook(tripwire(report, readable))
    try:
        space: dict[str, Any] = {"__name__": "program"}
        exec(compile(job["program"], "program", "exec"), space)
        said = json.dumps({"value": space["main"](job["value"])})
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: nothing but a returned value is a result
        report(json.dumps({"problem": f"raised {type(error).__name__}: {error}"}))
    report(said)


def reporter(channel: int) -> Callable[[str], NoReturn]:
    """A function that writes the answer and ends the process at once. It holds its own references on purpose."""
    write, leave = os.write, os._exit

    def report(text: str) -> NoReturn:
        left = text.encode()
        while left:
            left = left[write(channel, left) :]
        leave(0)

    return report


def limit(limits: dict[str, Any]) -> None:
    """Kernel limits, hard ones. macOS refuses some of them."""
    cpu, memory, output, files = (limits[name] for name in ("cpu_seconds", "memory_bytes", "output_bytes", "open_files"))
    for kind, most in (
        (resource.RLIMIT_CPU, (cpu, cpu + 1)),  # a signal that names the reason, then the one that cannot be ignored
        (resource.RLIMIT_AS, (memory, memory)),
        (resource.RLIMIT_FSIZE, (output, output)),
        (resource.RLIMIT_NOFILE, (files, files)),
        (resource.RLIMIT_CORE, (0, 0)),
        (resource.RLIMIT_NPROC, (0, 0)),  # binds where seccomp is missing; root is exempt from it
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, most)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it: a write too many is to end the run


def forget(*packages: str) -> None:
    """Unload modules, so that an import of them is one, and noticed."""
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


def confine(readable: tuple[str, ...]) -> None:
    """Linux: no capability, no file outside the readable folders, no system call of the forbidden ones."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS: without it neither of the following is for everyone
    libc.capset(struct.pack("=Ii", 0x20080522, 0), bytes(24))
    landlock(libc, (*readable, *SHARED_LIBRARIES))
    seccomp(libc)


def landlock(libc: Any, readable: tuple[str, ...]) -> None:
    """Handle every right over files that the first Landlock knows, and from its sixth version on signals and abstract sockets
    beyond this process; give back reading below `readable`."""
    create, add, restrict, every_right, read = 444, 445, 446, (1 << 13) - 1, 0b1100
    scoped = libc.syscall(create, None, 0, 1) >= 6  # the flag asks for the version
    rules = struct.pack("=QQQ", every_right, 0, 0b11) if scoped else struct.pack("=Q", every_right)
    ruleset = libc.syscall(create, rules, len(rules), 0)
    if ruleset < 0:
        return
    for path in filter(os.path.isdir, readable):
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        libc.syscall(add, ruleset, 1, struct.pack("=Qi", read, opened), 0)
        os.close(opened)
    libc.syscall(restrict, ruleset, 0)
    os.close(ruleset)


def seccomp(libc: Any) -> None:
    """A BPF program: kill for another machine's calls, the forbidden ones and forbidden commands of others; else allow."""
    if platform.machine() not in MACHINES:
        return
    audit_arch, column = MACHINES[platform.machine()]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    kill, allow = 0x80000000, 0x7FFF0000
    numbers = [call[column] for call in FORBIDDEN_CALLS.values() if call[column] >= 0]
    to_kill = [(equal, number, len(numbers) - at, 0) for at, number in enumerate(numbers)]
    by_command = []
    for call, commands in SIGNALLING.values():
        many = len(commands)
        by_command += [
            (equal, call[column], 0, many + 3),
            (load, 24, 0, 0),  # the second argument's lower half
            *((equal, command, many - at, 0) for at, command in enumerate(commands)),
            (give, allow, 0, 0),
            (give, kill, 0, 0),
        ]
    program = [
        (load, 4, 0, 0),  # the machine
        (equal, audit_arch, 0, len(by_command) + len(numbers) + 3),
        (load, 0, 0, 0),  # the call's number
        (at_least, 0x40000000, len(by_command) + len(numbers) + 1, 0),  # x86-64 has a second set of numbers up there
        *by_command,
        *to_kill,
        (give, allow, 0, 0),
        (give, kill, 0, 0),
    ]
    code = b"".join(struct.pack("=HBBI", operation, yes, no, value) for operation, value, yes, no in program)
    buffer = ctypes.create_string_buffer(code)
    libc.prctl(22, 2, struct.pack("@HP", len(program), ctypes.addressof(buffer)), 0, 0)  # PR_SET_SECCOMP, a filter


def tripwire(report: Callable[[str], NoReturn], readable: tuple[str, ...]) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that ends the run. It reports instead of raising, since what is raised can be caught."""
    inside = tuple(f"{root}{os.sep}" for root in readable)
    realpath, dumps = os.path.realpath, json.dumps

    def foreign(event: str, arguments: tuple[Any, ...]) -> bool:
        path = arguments[0]
        if event == "open" and (arguments[2] or 0) & WRITING:
            return True
        if isinstance(path, int):
            return False
        real = f"{realpath(os.fsdecode(path or '.'))}{os.sep}"
        return not real.startswith(inside) or any(folder in real for folder in INSTALLED)

    def forbidden(event: str, arguments: tuple[Any, ...]) -> bool:
        if event in READING_EVENTS:
            return foreign(event, arguments)
        if event == "import":
            return arguments[0] in FORBIDDEN_IMPORTS
        return event in FORBIDDEN_EVENTS or (event.startswith(FORBIDDEN) and event not in HARMLESS_EVENTS)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if forbidden(event, arguments):
            # Only what the code itself said: a note must be the same each time, so no process id, no folder's name.
            said = f" {arguments[0]!r:.100}" if event in READING_EVENTS or event == "import" else ""
            report(dumps({"problem": f"forbidden: {event}{said}"}))

    return hook


if __name__ == "__main__":
    main()
