"""The system calls that untrusted code can make, as a seccomp program that allows only the listed calls.

This module imports only the standard library: it is part of the launcher, which starts without the rest of the package.
"""

from __future__ import annotations

import struct

Instruction = tuple[int, int, int, int]
"""A classic BPF instruction: operation, value, jump if true, jump if false."""

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine -> its audit number, and the column of its calls in the tables below."""

CALLS = {
    # files that are open, and reading; Landlock decides which files
    **{"read": (0, 63), "write": (1, 64), "close": (3, 57), "lseek": (8, 62), "pread64": (17, 67), "pwrite64": (18, 68)},
    **{"readv": (19, 65), "writev": (20, 66), "open": (2, -1), "openat": (257, 56), "stat": (4, -1), "lstat": (6, -1)},
    **{"fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291), "access": (21, -1), "faccessat": (269, 48)},
    **{"faccessat2": (439, 439), "readlink": (89, -1), "readlinkat": (267, 78), "getdents64": (217, 61), "getcwd": (79, 17)},
    **{"dup": (32, 23), "dup2": (33, -1), "dup3": (292, 24), "pipe": (22, -1), "pipe2": (293, 59), "close_range": (436, 436)},
    **{"poll": (7, -1), "ppoll": (271, 73), "select": (23, -1), "pselect6": (270, 72)},
    # its own memory
    **{"munmap": (11, 215), "brk": (12, 214), "mremap": (25, 216), "madvise": (28, 233)},
    # its own signals' handlers, its own thread
    **{"rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132)},
    **{"futex": (202, 98), "set_tid_address": (218, 96), "set_robust_list": (273, 99), "rseq": (334, 293)},
    **{"arch_prctl": (158, -1), "sched_yield": (24, 124), "exit": (60, 93), "exit_group": (231, 94)},
    # time, chance, and who it is
    **{"clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101)},
    **{"gettimeofday": (96, 169), "time": (201, -1), "times": (100, 153), "getrusage": (98, 165), "getrandom": (318, 278)},
    **{"getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175)},
    **{"getgid": (104, 176), "getegid": (108, 177), "uname": (63, 160), "sysinfo": (99, 179)},
}
"""Allowed system call -> its number on each of MACHINES; -1 if the machine has no such call."""

EXEC_FD = 512
"""The file number of the open interpreter, the only file that can be executed. The file is closed when it is executed, and its
number is above the limit on open files, so nothing can be executed a second time."""

EXECUTABLE, WRITABLE, ANONYMOUS = 0b100, 0b010, 0x20
LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, GIVE = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000
"""The outcomes of a call: made, failed with EPERM, or the process is killed."""


def load_argument(index: int, upper: bool = False) -> Instruction:
    """Return the instruction that loads the lower or the upper 32 bits of the call's argument at this index. Both MACHINES are
    little-endian."""
    return (LOAD, 16 + 8 * index + 4 * upper, 0, 0)  # the arguments, of 8 bytes each, begin at byte 16 of seccomp_data


def allow_values(index: int, *values: int) -> tuple[Instruction, ...]:
    """Return the instructions that allow only these values of the call's argument at this index. The kernel reads the argument
    as 32 bits."""
    equal = [(EQUAL, value, len(values) - position, 0) for position, value in enumerate(values)]
    return (load_argument(index), *equal, (GIVE, REFUSE, 0, 0), (GIVE, ALLOW, 0, 0))


CALLS_WITH_ARGUMENTS: dict[str, tuple[tuple[int, int], tuple[Instruction, ...]]] = {
    # no F_SETFL, F_SETOWN, F_SETSIG, F_SETLEASE, F_NOTIFY: a file could be told to signal any process of the user
    "fcntl": ((72, 25), allow_values(1, 0, 1, 2, 3, 1030)),  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
    "ioctl": ((16, 29), allow_values(1, 0x5401, 0x5413, 0x5450, 0x5451)),  # TCGETS, TIOCGWINSZ, FIONCLEX, FIOCLEX
    "execveat": ((322, 281), allow_values(0, EXEC_FD)),
    # limits can only be read: there are no new ones
    "prlimit64": (
        (302, 261),
        (
            *(load_argument(2), (EQUAL, 0, 0, 3)),
            *(load_argument(2, upper=True), (EQUAL, 0, 0, 1)),
            *((GIVE, ALLOW, 0, 0), (GIVE, REFUSE, 0, 0)),
        ),
    ),
    # machine code comes only from files, which are read-only
    "mprotect": ((10, 226), (load_argument(2), (ANY_BIT, EXECUTABLE, 1, 0), (GIVE, ALLOW, 0, 0), (GIVE, REFUSE, 0, 0))),
    "mmap": (
        (9, 222),
        (
            *(load_argument(2), (ANY_BIT, EXECUTABLE, 0, 4)),
            *((ANY_BIT, WRITABLE, 2, 0), load_argument(3), (ANY_BIT, ANONYMOUS, 0, 1)),
            *((GIVE, REFUSE, 0, 0), (GIVE, ALLOW, 0, 0)),
        ),
    ),
}
"""System call that is allowed with some arguments -> its number on each of MACHINES, and the instructions that judge its
arguments. Each path through these instructions ends in a verdict."""


def allow_list(machine: str) -> list[Instruction]:
    """Return the seccomp program for one of MACHINES: it kills for another machine's calls and refuses calls that are not
    allowed."""
    audit_number, column = MACHINES[machine]
    program = [
        *((LOAD, 4, 0, 0), (EQUAL, audit_number, 1, 0), (GIVE, KILL, 0, 0)),
        *((LOAD, 0, 0, 0), (AT_LEAST, 0x40000000, 0, 1), (GIVE, KILL, 0, 0)),  # x86-64's second set of call numbers
    ]
    for number in (numbers[column] for numbers in CALLS.values() if numbers[column] >= 0):
        program += [(EQUAL, number, 0, 1), (GIVE, ALLOW, 0, 0)]
    for numbers, judgment in CALLS_WITH_ARGUMENTS.values():
        program += [(EQUAL, numbers[column], 0, len(judgment)), *judgment]
    return [*program, (GIVE, REFUSE, 0, 0)]


def pack_program(program: list[Instruction]) -> bytes:
    """Return the program as the kernel takes it: an array of sock_filter."""
    return b"".join(struct.pack("=HBBI", operation, yes, no, value) for operation, value, yes, no in program)
