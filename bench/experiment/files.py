"""The files of a run's folder, line by line: how one is appended to, and how its lines are read and found damaged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.errors import ResultsError
from bench.experiment.chain import Broken, sealed, unsealed

FORMAT = 3
"""Of the files in a run's folder. `bench upgrade` carries earlier ones over."""

MANIFEST, TRIALS, TEXTS, RESPONSES, GRADES = "manifest.json", "trials.jsonl", "texts.jsonl", "responses.jsonl", "grades.jsonl"


class AppendOnly:
    """One file of lines, open for appending."""

    def __init__(self, path: Path, opened: ExitStack):
        self.path, self.link = path, ""
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        opened.callback(os.close, self.file)

    @property
    def size(self) -> int:
        return os.fstat(self.file).st_size

    def repair(self) -> bool:
        """Cut off a last line that a kill left without its end; whether there was one."""
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

    def append_chained(self, line: bytes) -> None:
        content, link = sealed(line, self.link)
        self.append(content)
        self.link = link

    def append(self, content: bytes) -> None:
        """Write all of it, or leave the file as it was."""
        size = self.size
        try:
            written = 0
            while written < len(content):
                written += os.write(self.file, content[written:])
        except OSError as error:
            os.ftruncate(self.file, size)
            said = f"{self.path.parent}: cannot be written: {error.strerror}"
            raise ResultsError(f"{said}; what was recorded before is kept, run the same command again to go on") from error


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines with their numbers; a last line without its end is left out."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield number, line
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error


def last_link(path: Path) -> str:
    """The link of a file's last line; "" where it has none."""
    link = ""
    for number, line in lines_of(path):
        try:
            _, link = unsealed(line, link)
        except Broken as error:
            raise damaged(path, number) from error
    return link


def damaged(path: Path, number: int) -> ResultsError:
    said = f"{path}: line {number} is damaged, or one before it is missing"
    return ResultsError(f"{said}; restore the file from a copy, or run again under another --name")
