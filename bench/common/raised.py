"""The place in a folder where an exception was raised, and the exception's text in one line."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

LONGEST = 300
"""The most characters of an exception's text. Some texts hold a whole document."""

NAME = vars(type)["__name__"].__get__
"""The name of a class, of which a class of its own kind can say another."""


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


def text_of(error: BaseException) -> str:
    """Return an exception's text in one line, shortened if it is long. The class can be code of another package, and its
    methods can raise."""
    try:
        words = error.msg if isinstance(error, SyntaxError) else re.sub(r"bench_(pack|studies)_\w{12}\.?", "", str(error))
        text = " ".join(f"{words}".split())
    except BaseException:
        return "it has no text"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def words_of(error: BaseException) -> str:
    """Return an exception's type and text, for example `KeyError: 'apples'`, in one line and shortened if it is long."""
    return f"{NAME(type(error))}: {text_of(error)}".rstrip(": ")
