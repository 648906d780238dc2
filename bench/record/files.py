"""The files of a run's folder: functions that open, append to and write them, and that read and check their lines.

A foreign folder can hold anything. No link is followed on writing, and anything but a regular file is refused: reading a pipe
would wait forever.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import IO

from bench.common import files
from bench.common.bounds import MIN_BYTES_PER_VALUE, excess_in
from bench.common.errors import ResultsError, one_line
from bench.record.archive import MEMBERS, SUFFIX, archive_of, member, names_in, refuse_archived
from bench.record.chain import SUFFIX as SEAL
from bench.record.chain import BrokenChain, link_of, seal, unseal

FORMAT = 4
"""The format of the files in a run's folder."""
READ_BY = {2: "0.1.0", 3: "at commit b912e43"}
"""Earlier format -> the version of bench that reads it. Format 3 was never released."""

LARGEST_MANIFEST, LONGEST_LINE, BLOCK = 2**24, 2**28, 2**20
"""The most bytes of a manifest, the most bytes of a line, and the bytes of a block that is read."""
MANIFEST, TRIALS, TEXTS, RESPONSES, GRADES = MEMBERS


class AppendOnly:
    """A file of lines that is open for appending. Raises ResultsError for a link, or anything but a regular file."""

    def __init__(self, path: Path, opened: ExitStack):
        self.path, self.link = path, ""
        refuse_archived(path.parent)
        refuse_link(path)
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        opened.callback(os.close, self.file)
        if not stat.S_ISREG(os.fstat(self.file).st_mode):
            raise ResultsError(f"{path}: is not a file; remove it, or restore the file from a copy")

    @property
    def size(self) -> int:
        return os.fstat(self.file).st_size

    @property
    def is_where_it_was(self) -> bool:
        """Whether the path still leads to this file: a folder can be renamed between its opening and its locking."""
        try:
            return os.path.samestat(os.fstat(self.file), self.path.stat())
        except FileNotFoundError:
            return False

    def repair(self) -> bool:
        """Cut off an incomplete last line, which a kill left. Return whether there was such a line."""
        size = self.size
        end, block = size, 1 << 16
        while end > 0:
            start = max(0, end - block)
            newline = os.pread(self.file, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(self.file, end)
        return end < size

    def append_chained(self, *lines: bytes) -> None:
        """Append lines, each with its link, in one write."""
        contents, link = [], self.link
        for line in lines:
            content, link = seal(line, link)
            contents.append(content)
        self.append(b"".join(contents))
        self.link = link

    def append(self, content: bytes) -> None:
        """Write the whole content, or leave the file unchanged."""
        written = 0
        try:
            while written < len(content):
                written += os.write(self.file, content[written:])
        except OSError as error:
            os.ftruncate(self.file, self.size - written)
            problem = f"{self.path.parent}: cannot be written: {error.strerror}"
            raise ResultsError(f"{problem}; what was recorded before is kept, run the same command again to go on") from error


def refuse_link(path: Path) -> None:
    """Raise ResultsError if a path to write to is a link."""
    if path.is_symlink():
        raise ResultsError(f"{path}: is a link, and nothing is written through a link; remove it, or name what it leads to")


def opened(path: Path) -> IO[bytes]:
    """Open a file of a run for reading, from the run's archive if the run has no folder (`bench.record.archive`).

    Raises OSError, also for anything but a regular file, and ResultsError for an archive that is not a run's.
    """
    archive = archive_of(path.parent)
    return member(archive, path.name) if archive else files.opened(path)


def holds(folder: Path, name: str) -> bool:
    """Return whether a run has this file, in its folder or in its archive. Raises ResultsError for a damaged archive."""
    archive = archive_of(folder)
    return name in names_in(archive) if archive else (folder / name).exists()


def runs_in(results: Path) -> list[Path]:
    """Return the folders of the runs below a folder, sorted. For an archived run this is the folder that it was made from."""
    folders = {path.parent for path in results.glob(f"*/{MANIFEST}")}
    archives = {path.with_name(path.name.removesuffix(SUFFIX)) for path in results.glob(f"*{SUFFIX}")}
    return sorted(folders | archives)


def manifest_bytes(folder: Path) -> bytes:
    """Return the manifest's bytes. Raises OSError, and ResultsError for an archive that is not a run's."""
    with opened(folder / MANIFEST) as file:
        return files.read_bounded(file, folder / MANIFEST, LARGEST_MANIFEST)


def lines_of(path: Path, sparse: int = MIN_BYTES_PER_VALUE) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) for each complete line of a file. Raises ResultsError for an unreadable file, a line that is too
    long, or a line with too many values."""
    try:
        with opened(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
                if len(line) == LONGEST_LINE:
                    raise ResultsError(
                        f"{path}: line {number} has more than {LONGEST_LINE >> 20} MiB, which is more than a run writes"
                    )
                if line.endswith(b"\n"):
                    if why := excess_in(line, sparse):
                        raise ResultsError(f"{path}: line {number} holds what no run writes: {why}")
                    yield number, line
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error


def last_link(path: Path) -> str:
    """Return the link of a file's last line; "" if the file is empty. Raises ResultsError for a broken chain."""
    link = ""
    for number, line in lines_of(path):
        try:
            _, link = unseal(line, link)
        except BrokenChain as error:
            raise damage_error(path, number) from error
    return link


def link_at_end(path: Path) -> str:
    """Return the link that a file's last line states, without checking it."""
    line = read = b""
    with opened(path) as file:
        for part in iter(lambda: file.read(BLOCK), b""):
            read = read[-SEAL:] + part
            if (end := read.rfind(b"\n")) >= 0:
                line = read[max(0, end - SEAL) : end]
    return link_of(line)


def damage_error(path: Path, number: int) -> ResultsError:
    """Return the error for a damaged line of a file."""
    problem = f"{path}: line {number} is damaged, or one before it is missing"
    todo = f"`bench verify {path.parent}` says more; restore the file from a copy, or run again under another --name"
    return ResultsError(f"{problem}; {todo}")


def write_files(to: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder in reverse order: a page is written after all files that it names.

    Args:
        to: The folder. It is made if it does not exist.
        contents: The content of each file, by its path below `to`. A file of the same name is replaced.

    Returns:
        The paths of the files.

    Raises:
        ResultsError: A name leads out of the folder, a file cannot be written, or a folder is a link.
    """
    for name in contents:
        _refuse_outside(to, name)
    for folder in (to, *{to / folder for name in contents for folder in PurePath(name).parents}):
        refuse_link(folder)
    for name in reversed(list(contents)):
        _write(to / name, contents[name])
    return [to / name for name in contents]


def _refuse_outside(to: Path, name: str) -> None:
    """Raise ResultsError for a name that is not a path below the folder: a name can contain text from outside."""
    place = PurePath(name)
    if "\0" in name or place.is_absolute() or ".." in place.parts or not place.name:
        raise ResultsError(f"{to}: {one_line(name, 60)!r} would be written outside of it; nothing was written")


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, by writing it under another name first."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, content)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
