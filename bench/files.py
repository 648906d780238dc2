"""A file that a user or a stranger named: opened where it is a file at all, and read within bounds.

A pipe would be waited for without end, and a device may have no end.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import IO


def opened(path: Path) -> IO[bytes]:
    """A file, open for reading. Raises OSError, for a folder, a pipe and a device as well."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(EINVAL, "it is no file", str(path))
    return os.fdopen(file, "rb")


def content_of(path: Path, most: int) -> bytes:
    """What a file holds. Raises OSError, for a file of more than `most` bytes as well."""
    with opened(path) as file:
        return within(file, path, most)


def within(file: IO[bytes], path: Path, most: int) -> bytes:
    """What an open file holds. Raises OSError where that is more than `most` bytes."""
    content = file.read(most + 1)
    if len(content) > most:
        raise OSError(EFBIG, f"it has more than {most:,} bytes", str(path))
    return content


def text_of(path: Path, most: int) -> str:
    """The text of a file in UTF-8, without the byte order mark that some editors put before it. Raises OSError as `content_of`
    does, and ValueError, in words that follow the file's name, for what is no text."""
    try:
        text = content_of(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is no text in UTF-8 (byte {error.start}); save it as UTF-8") from error
    if "\0" in text:
        raise ValueError("holds a zero byte, so it is no text; save it as UTF-8")
    return text
