"""At which addresses a process listens, as the kernel tells it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, the same in IPv6, and ::1, as /proc/net has them."""


def listening_at(process: int) -> set[str]:
    """Return the addresses at which a process and its descendants listen."""
    parents = {}
    for folder in (each for each in Path("/proc").iterdir() if each.name.isdecimal()):
        with suppress(OSError):
            parents[int(folder.name)] = int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    family = {process}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    open_files = set()
    for descriptor in (each for member in family for each in Path(f"/proc/{member}/fd").glob("*")):
        with suppress(OSError):
            open_files.add(str(descriptor.readlink()))
    sockets = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:]]
    return {
        where.partition(":")[0]
        for _, where, _, state, *_, inode in ((*fields[:4], fields[9]) for fields in sockets)
        if state == "0A" and f"socket:[{inode}]" in open_files
    }
