"""The list of allowed calls: what stands on it is allowed, and whatever does not is refused, on both machines."""

from __future__ import annotations

import json
import platform
import signal
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import bench
from bench.run.sandbox.syscalls import (
    ALLOW,
    CALLS,
    CALLS_WITH_ARGUMENTS,
    EXEC_FD,
    GIVE,
    KILL,
    MACHINES,
    REFUSE,
    allow_list,
    pack_program,
)

HIGHEST = 700
"""Above every call's number."""
UNFILTERED = {335, 336} if platform.machine() == "x86_64" else set[int]()
"""uretprobe and uprobe: the kernel kills whoever calls them of its own accord, and asks no filter."""
KERNEL = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in MACHINES, reason="Linux on a known machine only"
)


program_of = cache(allow_list)


def verdict(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the program says of a call, by the meaning of its instructions."""
    given = [*arguments, *[0] * (6 - len(arguments))]
    call = struct.pack("=IIQ6Q", number, MACHINES[machine][0] if arch is None else arch, 0, *given)
    program, at, held = program_of(machine), 0, 0
    while True:
        operation, value, yes, no = program[at]
        at += 1
        if operation == 0x20:
            [held] = struct.unpack_from("=I", call, value)
        elif operation == 0x06:
            return value
        else:
            is_so = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[operation]
            at += yes if is_so else no


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_that_is_not_on_the_list_is_refused(machine: str) -> None:
    column = MACHINES[machine][1]
    allowed = {numbers[column] for numbers in CALLS.values()}
    judged = {numbers[column] for numbers, _ in CALLS_WITH_ARGUMENTS.values()}
    for number in set(range(HIGHEST)) - judged:
        assert verdict(machine, number, 7, 7, 7) == (ALLOW if number in allowed else REFUSE), number


@pytest.mark.parametrize("machine", MACHINES)
def test_another_machines_calls_are_killed(machine: str) -> None:
    other = 0x40000003  # of 32-bit x86
    assert {verdict(machine, number, arch=other) for number in range(HIGHEST)} == {KILL}
    assert {verdict(machine, number) for number in (0x40000000, 0x40000001, 0xFFFFFFFF)} == {KILL}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "is_allowed"),
    [
        ("fcntl", (3, 1), True),  # F_GETFD
        ("fcntl", (3, 4), False),  # F_SETFL
        ("fcntl", (3, 8), False),  # F_SETOWN
        ("fcntl", (3, 10), False),  # F_SETSIG
        ("fcntl", (3, 1024), False),  # F_SETLEASE
        ("fcntl", (3, 2**32 + 8), False),  # the kernel looks at half of it
        ("ioctl", (3, 0x5401), True),  # TCGETS
        ("ioctl", (3, 0x5452), False),  # FIOASYNC
        ("ioctl", (3, 0x5412), False),  # TIOCSTI
        ("execveat", (EXEC_FD,), True),
        ("execveat", (EXEC_FD - 1,), False),
        ("prlimit64", (0, 7, 0, 2**47), True),
        ("prlimit64", (0, 7, 1), False),
        ("prlimit64", (0, 7, 2**40), False),
        ("mprotect", (0, 4096, 0b011), True),
        ("mprotect", (0, 4096, 0b101), False),
        ("mmap", (0, 4096, 0b011, 0x22), True),
        ("mmap", (0, 4096, 0b101, 0x02), True),  # of a file
        ("mmap", (0, 4096, 0b101, 0x22), False),  # of nothing
        ("mmap", (0, 4096, 0b111, 0x02), False),
    ],
)
def test_some_calls_are_allowed_for_some_arguments(
    machine: str, call: str, arguments: tuple[int, ...], is_allowed: bool
) -> None:
    number = CALLS_WITH_ARGUMENTS[call][0][MACHINES[machine][1]]
    assert verdict(machine, number, *arguments) == (ALLOW if is_allowed else REFUSE)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_program_is_packed_as_the_kernel_takes_it(machine: str) -> None:
    program = allow_list(machine)
    assert len(pack_program(program)) == 8 * len(program) and len(program) < 4096
    assert all(max(yes, no) + at + 1 < len(program) for at, (operation, _, yes, no) in enumerate(program) if operation != GIVE)


def under_the_filter(body: str) -> subprocess.CompletedProcess[str]:
    """Run `body`, which has ctypes and `libc`, under the filter and nothing else."""
    path = str(Path(bench.__file__).parents[2])
    script = f"import sys; sys.path.insert(0, {path!r})\nimport ctypes, json, mmap, os\nfrom bench.run.sandbox import kernel\n"
    script += f"libc = kernel.libc()\n{body}"
    return subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)


@KERNEL
def test_the_kernel_refuses_every_call_that_is_not_on_the_list() -> None:
    column = MACHINES[platform.machine()][1]
    listed = {numbers[column] for numbers in (*CALLS.values(), *(numbers for numbers, _ in CALLS_WITH_ARGUMENTS.values()))}
    tried = sorted(set(range(HIGHEST)) - listed - UNFILTERED)
    body = "kernel.set_no_new_privileges(); kernel.restrict_calls()\n"
    body += f"print(json.dumps([(libc.syscall(n, 0, 0, 0, 0, 0, 0), ctypes.get_errno()) for n in {tried}]))"
    done = under_the_filter(body)
    assert set(map(tuple, json.loads(done.stdout))) == {(-1, 1)}, done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="machine code of x86-64")
@pytest.mark.parametrize(
    "code",
    [
        "b814000000cd80c3",  # mov eax, 20; int 0x80: getpid of 32-bit x86
        "b827000040" + "0f05c3",  # mov eax, 0x40000027; syscall: getpid of x32
    ],
)
def test_the_kernel_kills_at_another_machines_call(code: str) -> None:
    body = f"page = mmap.mmap(-1, 4096, prot=7); page.write(bytes.fromhex({code!r}))\n"
    body += "call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
    body += "kernel.set_no_new_privileges(); kernel.restrict_calls(); call(); print('alive')"
    done = under_the_filter(body)
    assert (done.returncode, done.stdout) == (-signal.SIGSYS, ""), done.stderr
