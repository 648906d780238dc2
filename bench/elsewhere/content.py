"""The JSON content of files that other programs wrote: one value, or several values one after another or one in each line."""

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


def json_of(file_name: str, content: bytes) -> Any:
    """Return the JSON value of a text; for several values, a list.

    Args:
        file_name: The file, named in messages of errors.
        content: The text, in an encoding of JSON.

    Raises:
        ResultsError: It is no JSON, is cut, or holds too many values. The line says where.
    """
    if excess := excess_in(content, SPARSE):
        raise ResultsError(f"{file_name}: is not read: {excess}")
    try:
        text = content.decode(json.detect_encoding(content)).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ResultsError(
            f"{file_name}: is no text in UTF-8 (byte {error.start}); of OTLP its JSON is read, and not its protobuf"
        ) from error
    decoder, values, begin = json.JSONDecoder(), list[Any](), BEGIN.search(text)
    try:
        while begin:
            value, end = decoder.raw_decode(text, begin.start())
            values.append(value)
            begin = BEGIN.search(text, end)
    except RecursionError as error:
        raise ResultsError(f"{file_name}: is not read: it is nested too deeply") from error
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        problem = "is cut: its JSON ends in the middle; fetch it again" if cut else "is no JSON"
        raise ResultsError(f"{file_name}: {problem} (line {error.lineno}, column {error.colno})") from error
    except ValueError as error:
        raise ResultsError(
            f"{file_name}: is not read: a number has more than {sys.get_int_max_str_digits():,} digits"
        ) from error
    if not values:
        raise ResultsError(f"{file_name}: is no JSON, but empty")
    return values[0] if len(values) == 1 else values
