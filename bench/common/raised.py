"""The place in a folder where an exception was raised, and the exception's text in one line."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

LONGEST_TEXT = 300
"""The most characters of an exception's text. Some texts hold a whole document."""

_class_name = vars(type)["__name__"].__get__
"""Returns the name of a class. A class with a metaclass can give another name as its `__name__`."""


def place_of(error: BaseException, folder: Path) -> str:
    """Return the last line in this folder through which the exception passed, for example `grader.py:12`; "" if there is
    none."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and isinstance(error.filename, str):
        frames.append((error.filename, error.lineno))
    root = folder.resolve()
    for name, line in reversed(frames):
        path = Path(name).resolve()
        if path.is_relative_to(root):
            return f"{path.relative_to(root).as_posix()}:{line}"
    return ""


def message_of(error: BaseException) -> str:
    """Return an exception's message in one line, shortened if it is long. The class can be code of another package, and its
    methods can raise."""
    try:
        words = error.msg if isinstance(error, SyntaxError) else re.sub(r"bench_(pack|studies)_\w{12}\.?", "", str(error))
        text = " ".join(f"{words}".split())
    except BaseException:
        return "it has no text"
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def type_and_message(error: BaseException) -> str:
    """Return an exception's type and message, for example `KeyError: 'apples'`, in one line and shortened if it is long."""
    return f"{_class_name(type(error))}: {message_of(error)}".rstrip(": ")
