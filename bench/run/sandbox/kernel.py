"""Take rights away from this process with the Linux kernel, and find out which rights the kernel can take away. Every return
code is checked.

This module imports only the standard library: it is part of the launcher, which starts without the rest of the package.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from bench.run.sandbox.syscalls import CALLS_WITH_ARGUMENTS, KILL, MACHINES, allow_list, pack_program

TYPE_CHECKING = False  # typing would double the launcher's start
if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from typing import Any

SET_DUMPABLE, SET_DEATH_SIGNAL, SET_SECCOMP, SET_NO_NEW_PRIVILEGES, GET_NO_NEW_PRIVILEGES = 4, 1, 22, 38, 39
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every machine
SECCOMP = {"x86_64": 317, "aarch64": 277}

KILL_SIGNAL = 9
EXECUTE, READ_FILE, READ_FOLDER = 1, 1 << 2, 1 << 3
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Landlock's version -> the number of rights over files that it knows. Moving between folders, truncation and devices came
later."""
TRUNCATE, TRUNCATE_FROM, NETWORK_FROM, SCOPES_FROM = 1 << 14, 3, 4, 6
"""Landlock's right to empty a file, and its first versions with this right, with TCP, and with signals and abstract sockets
beyond the process."""
FILES, TRUNCATION, TCP, SIGNALS = "other files", "truncation", "TCP", "signals"
"""The names of Landlock's guards. Each can be left out, to test what the other guards stop."""


def libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    return os.uname().machine


def require_success(call_name: str, returned: int) -> int:
    """Return the result of a system call. Raises OSError, which names the call, if it failed."""
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call_name}: {os.strerror(number)}")
    return returned


def landlock_version() -> int:
    """Return Landlock's version; 0 if the kernel has no Landlock."""
    if sys.platform != "linux":
        return 0
    return max(0, int(libc().syscall(CREATE_RULESET, None, 0, 1)))  # the flag asks for the version


def can_filter_calls() -> bool:
    """Return whether seccomp can kill a process here, and this machine's call numbers are known."""
    if sys.platform != "linux" or machine() not in MACHINES:
        return False
    ask_for_action = 2
    return bool(libc().syscall(SECCOMP[machine()], ask_for_action, 0, struct.pack("=I", KILL)) == 0)


def set_no_new_privileges() -> None:
    """Set no_new_privs: no program that this process starts can gain a right. Unprivileged users need this for both guards."""
    require_success("no_new_privs", libc().prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))


def make_undumpable() -> None:
    """Make this process undumpable: other processes without capabilities, also of the same user, can neither read or write its
    memory nor open its files. A program that it executes is dumpable again."""
    require_success("dumpable", libc().prctl(SET_DUMPABLE, 0, 0, 0, 0))


def drop_capabilities() -> None:
    """Drop all capabilities, so that root cannot circumvent the guards."""
    require_success("capset", libc().capset(struct.pack("=Ii", 0x20080522, 0), bytes(24)))


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends. Raises ProcessLookupError if the parent has ended."""
    require_success("death signal", libc().prctl(SET_DEATH_SIGNAL, KILL_SIGNAL, 0, 0, 0))
    if os.getppid() != parent:
        raise ProcessLookupError("the launcher has ended")


def rights_taken(version: int, without: Container[str] = ()) -> tuple[int, int, int]:
    """Return three bit masks of what Landlock takes away: rights over files, rights over TCP ports, and scopes. They have all
    bits of this version, except the bits of guards that are left out."""
    known = (1 << max((number for since, number in FILE_RIGHTS.items() if since <= version), default=0)) - 1
    rights = (0 if FILES in without else known & ~TRUNCATE) | (0 if TRUNCATION in without else known & TRUNCATE)
    network = 0b11 if version >= NETWORK_FROM and TCP not in without else 0
    scopes = 0b11 if version >= SCOPES_FROM and SIGNALS not in without else 0
    return rights, network, scopes


def restrict(version: int, rules: Iterable[tuple[int, int]], without: Container[str] = ()) -> None:
    """Take away every right that this version of Landlock handles. The `rules` are exceptions: pairs of the descriptor of an
    open path and the rights that remain below that path."""
    rights, network, scopes = rights_taken(version, without)
    if not (rights or network or scopes):
        return
    attributes = struct.pack("=QQQ", rights, network, scopes)[: 24 if scopes else 16 if network else 8]
    system = libc()
    ruleset = require_success("landlock_create_ruleset", system.syscall(CREATE_RULESET, attributes, len(attributes), 0))
    path_beneath = 1  # the type of a rule
    for descriptor, allowed in rules:
        if remaining := allowed & rights:
            rule = struct.pack("=Qi", remaining, descriptor)
            require_success("landlock_add_rule", system.syscall(ADD_RULE, ruleset, path_beneath, rule, 0))
    require_success("landlock_restrict_self", system.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def restrict_calls() -> None:
    """Limit this process to the allowed system calls from now on."""
    program = allow_list(machine())
    code = ctypes.create_string_buffer(pack_program(program))
    pointer = struct.pack("@HP", len(program), ctypes.addressof(code))
    require_success("seccomp", libc().prctl(SET_SECCOMP, 2, pointer, 0, 0))


def execute(file: int, arguments: list[str], environment: list[str]) -> None:
    """Replace this process by the program in the open file of this number. Raises OSError if that fails; it never returns."""
    numbers, _ = CALLS_WITH_ARGUMENTS["execveat"]
    number, empty_path = numbers[MACHINES[machine()][1]], 0x1000
    require_success("execveat", libc().syscall(number, file, b"", _texts(arguments), _texts(environment), empty_path))


def _texts(texts: list[str]) -> Any:
    """Return texts as a C array of strings that ends with NULL."""
    return (ctypes.c_char_p * (len(texts) + 1))(*map(os.fsencode, texts), None)
