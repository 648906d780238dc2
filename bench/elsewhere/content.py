"""The JSON of a file that others made: one value, or several, one after another or one in each line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from bench.common.bounds import excess_in
from bench.common.errors import ResultsError
from bench.common.files import content_of

LARGEST = 2**26
"""Bytes of the largest file, and of all that an archive holds."""
SPARSE = 4
"""The fewest bytes for each value of a file. Lists of token ids have about 6."""
BEGIN = re.compile(r"[^ \t\r\n\x1e,]")
"""Where a value begins: what can stand between two values is left out."""


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file. Raises ResultsError if it cannot be read, or has more than `LARGEST` bytes."""
    try:
        return content_of(path, LARGEST)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error


def json_of(where: str, content: bytes) -> Any:
    """Return the value that a text of JSON holds; of several values a list.

    Args:
        where: The file, which begins the lines of errors.
        content: The text, in an encoding of JSON.

    Raises:
        ResultsError: It is no JSON, is cut, or holds too many values. The line says where.
    """
    if why := excess_in(content, SPARSE):
        raise ResultsError(f"{where}: is not read: {why}")
    try:
        text = content.decode(json.detect_encoding(content)).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ResultsError(
            f"{where}: is no text in UTF-8 (byte {error.start}); of OTLP its JSON is read, and not its protobuf"
        ) from error
    decoder, values, begin = json.JSONDecoder(), list[Any](), BEGIN.search(text)
    try:
        while begin:
            value, end = decoder.raw_decode(text, begin.start())
            values.append(value)
            begin = BEGIN.search(text, end)
    except RecursionError as error:
        raise ResultsError(f"{where}: is not read: it is nested too deeply") from error
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        what = "is cut: its JSON ends in the middle; fetch it again" if cut else "is no JSON"
        raise ResultsError(f"{where}: {what} (line {error.lineno}, column {error.colno})") from error
    except ValueError as error:
        raise ResultsError(f"{where}: is not read: a number has more than {sys.get_int_max_str_digits():,} digits") from error
    if not values:
        raise ResultsError(f"{where}: is no JSON, but empty")
    return values[0] if len(values) == 1 else values
