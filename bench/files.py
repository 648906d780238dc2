"""Files that a user or a stranger named: opened only if they are regular files, and read within bounds.

A pipe would block without end, and a device may have no end.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import IO


def opened(path: Path) -> IO[bytes]:
    """Return a file, open for reading. Raises OSError, also for a folder, a pipe or a device."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(EINVAL, "it is not a file", str(path))
    return os.fdopen(file, "rb")


def content_of(path: Path, most: int) -> bytes:
    """Return what a file holds. Raises OSError, also for a file of more than `most` bytes."""
    with opened(path) as file:
        return within(file, path, most)


def within(file: IO[bytes], path: Path, most: int) -> bytes:
    """Return what an open file holds. Raises OSError if that is more than `most` bytes."""
    content = file.read(most + 1)
    if len(content) > most:
        raise OSError(EFBIG, f"it has more than {most:,} bytes", str(path))
    return content


def text_of(path: Path, most: int) -> str:
    """Return the text of a file in UTF-8, without the byte order mark that some editors write. Raises OSError as `content_of`
    does, and ValueError if the file is no text, with words that follow the file's name."""
    try:
        text = content_of(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    if "\0" in text:
        raise ValueError("holds a zero byte, so it is not text; save it as UTF-8")
    return text
