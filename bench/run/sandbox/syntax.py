"""Check whether an untrusted text is Python.

A text is parsed and not run. But no text of a model is parsed in this process: Python's parser takes minutes for some texts of
65,536 characters, and holds the interpreter's lock meanwhile.
"""

from __future__ import annotations

from functools import lru_cache

from bench.common.errors import one_line
from bench.run.sandbox.parent import Limits, run_python

LIMITS = Limits(wall_seconds=15.0, cpu_seconds=1)
MAX_MESSAGE_CHARS = 200
"""Characters of the message about a text."""

PROGRAM = """
ONLY_PARSE = 0x400  # ast.PyCF_ONLY_AST; the module takes longer to import than most texts to parse

def main(text):
    try:
        compile(text, "text.py", "exec", ONLY_PARSE, dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return type(error).__name__
    return ""
"""


@lru_cache(maxsize=1024)
def unparsable(text: str) -> str:
    """Return in one line why a text is no Python; "" if it is Python. A text that takes more than a second to parse counts as
    no Python."""
    result = run_python({}, PROGRAM, text, LIMITS)
    return one_line(str(result.value) if result.ok else result.problem, MAX_MESSAGE_CHARS)
