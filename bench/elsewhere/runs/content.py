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

MAX_BYTES = 2**26
"""The most bytes of a file, and of the unpacked content of an archive."""
MIN_BYTES_PER_VALUE = 4
"""The least number of bytes for each value of a file; a file with fewer is not read. Lists of token ids have about 6."""
VALUE_START = re.compile(r"[^ \t\r\n\x1e,]")
"""The first character of a value: any character except those that can separate two values."""


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file. Raises ResultsError if it cannot be read, or has more than `MAX_BYTES` bytes."""
    try:
        return content_of(path, MAX_BYTES)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error


def json_of(file_name: str, content: bytes) -> Any:
    """Return the JSON value that a file holds; if it holds several values, return them in a list.

    Args:
        file_name: The file, named in messages of errors.
        content: The content of the file: text in an encoding of JSON.

    Raises:
        ResultsError: The content is no JSON, is cut, or holds too many values. The message says where.
    """
    if excess := excess_in(content, MIN_BYTES_PER_VALUE):
        raise ResultsError(f"{file_name}: is not read: {excess}")
    try:
        text = content.decode(json.detect_encoding(content)).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ResultsError(
            f"{file_name}: is no text in UTF-8 (byte {error.start}); of OTLP its JSON is read, and not its protobuf"
        ) from error
    decoder, values, begin = json.JSONDecoder(), list[Any](), VALUE_START.search(text)
    try:
        while begin:
            value, end = decoder.raw_decode(text, begin.start())
            values.append(value)
            begin = VALUE_START.search(text, end)
    except RecursionError as error:
        raise ResultsError(f"{file_name}: is not read: it is nested too deeply") from error
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        problem = "is cut: its JSON ends in the middle; fetch it again" if is_cut else "is no JSON"
        raise ResultsError(f"{file_name}: {problem} (line {error.lineno}, column {error.colno})") from error
    except ValueError as error:
        raise ResultsError(
            f"{file_name}: is not read: a number has more than {sys.get_int_max_str_digits():,} digits"
        ) from error
    if not values:
        raise ResultsError(f"{file_name}: is no JSON, but empty")
    return values[0] if len(values) == 1 else values
