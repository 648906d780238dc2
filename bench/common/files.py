"""Files whose paths come from a user or a stranger. They are opened only if they are regular files, read within bounds, and
written completely or not at all.

A pipe would block without end, and a device may have no end.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import IO


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading. Raises OSError, also for a folder, a pipe or a device."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(EINVAL, "it is not a file", str(path))
    return os.fdopen(file, "rb")


def content_of(path: Path, most: int) -> bytes:
    """Return the content of a file. Raises OSError, also for a file of more than `most` bytes."""
    with opened(path) as file:
        return read_bounded(file, path, most)


def read_bounded(file: IO[bytes], path: Path, most: int) -> bytes:
    """Return the content of an open file. Raises OSError if it has more than `most` bytes."""
    content = file.read(most + 1)
    if len(content) > most:
        raise OSError(EFBIG, f"it has more than {most:,} bytes", str(path))
    return content


def text_of(path: Path, most: int) -> str:
    """Return the text of a file in UTF-8, without a byte order mark. Raises the errors of `content_of`, and ValueError if
    the file is no text; the message continues a sentence that begins with the file's name."""
    try:
        text = content_of(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    if "\0" in text:
        raise ValueError("holds a zero byte, so it is not text; save it as UTF-8")
    return text


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, and replace any file or link of the same name. Raises OSError."""
    with new_file(path) as file:
        file.write(content)


DEVICES = Path("/dev")
UNFINISHED_NAMES = f".{'[0-9a-f]' * 16}.half"
"""A glob pattern for the names of files that `new_file` has begun."""


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files that killed processes left (`new_file`). No other process may write in the folder."""
    for path in folder.glob(UNFINISHED_NAMES):
        path.unlink(missing_ok=True)


@contextmanager
def new_file(path: Path, mode: int = 0o644) -> Iterator[IO[bytes]]:
    """Open a new file. When the block ends, and only then, the file replaces any file or link of the same name. Two
    processes can write a file at once; the later file replaces the earlier. Raises OSError, also if the name is a pipe, a
    device, or a link in /dev such as /dev/stdout: root could replace it for all programs of the machine."""
    with suppress(FileNotFoundError):
        kind = stat.S_IFMT(path.lstat().st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK) or path.absolute().parent == DEVICES:
            raise OSError(EINVAL, "is a device or a pipe; name a file", str(path))
    unfinished = path.with_name(f".{secrets.token_hex(8)}.half")
    with os.fdopen(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "w+b") as file:
        try:
            yield file
            file.flush()
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink()
            raise
