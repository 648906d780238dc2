"""The files that a sandboxed interpreter can read besides its job: its library and the shared libraries, without installed
packages.

This module imports only the standard library: it is part of the launcher, which starts without the rest of the package. It does
not import pathlib, which would double the time of that start.
"""

from __future__ import annotations

import os

from bench.run.sandbox.kernel import EXECUTE, READ_FILE, READ_FOLDER

PACKAGE_FOLDERS = ("site-packages", "dist-packages")
"""The names of folders with installed packages, which can hold data that graders use."""
FOREIGN_CALLS = "ctypes"
"""The package with which code can call any machine code. Neither the package nor its extension module can be read."""
UNREADABLE_MODULES = (f"_{FOREIGN_CALLS}", "_test", "_xx", "xx")
"""Prefixes of extension modules that cannot be read: the module of FOREIGN_CALLS, and modules that test the interpreter."""


def landlock_rules(library: str) -> list[tuple[int, int]]:
    """Return pairs of an open path and Landlock's rights below that path."""
    rules = [(library, READ_FOLDER), ("/etc/ld.so.cache", READ_FILE), *_library_rules(library)]
    for name in loaded_libraries():
        rules.append((name, READ_FILE | (EXECUTE if os.path.basename(name).startswith("ld") else 0)))
    for folder in dict.fromkeys(map(os.path.dirname, loaded_libraries())):
        if folder != f"{library}/lib-dynload":
            rules += _shared_library_rules(folder)
    return [(os.open(name, os.O_PATH), rights) for name, rights in rules if os.path.exists(name)]


def loaded_libraries() -> list[str]:
    """Return the shared libraries that this interpreter has loaded."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        names = {line.split(maxsplit=5)[5].rstrip("\n") for line in file if "/" in line}
    return sorted(name for name in names if ".so" in os.path.basename(name) and FOREIGN_CALLS not in os.path.basename(name))


def _library_rules(library: str) -> list[tuple[str, int]]:
    """Return the rules for the entries of Python's library that the sandbox may read: pairs of a path and its access rights."""
    rules = []
    for entry in os.scandir(library):
        if entry.name in (*PACKAGE_FOLDERS, FOREIGN_CALLS):
            continue
        if entry.name == "lib-dynload":
            rules += [(file.path, READ_FILE) for file in os.scandir(entry.path) if not file.name.startswith(UNREADABLE_MODULES)]
        else:
            rules.append((entry.path, READ_FILE | READ_FOLDER if entry.is_dir() else READ_FILE))
    return rules


def _shared_library_rules(folder: str) -> list[tuple[str, int]]:
    """Return the rules for a folder of shared libraries: one for the whole folder, or one for each library if the folder also
    has Python's packages."""
    names = os.listdir(folder)
    if not any(name.startswith("python") for name in names):
        return [(folder, READ_FILE)]
    return [(f"{folder}/{name}", READ_FILE) for name in names if ".so" in name]
