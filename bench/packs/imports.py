"""The import statements in a file of Python, by whose trail its digest finds what else belongs to it."""

from __future__ import annotations

import ast
from functools import lru_cache

Statement = ast.Import | ast.ImportFrom


@lru_cache(maxsize=1024)
def statements_of(source: bytes) -> tuple[Statement, ...]:
    """Those of a source, wherever in it they stand. Found once for the same source: each instance of a pack, and each
    architecture in one folder, asks anew. Raises SyntaxError or ValueError for what is no Python."""
    return tuple(node for node in ast.walk(ast.parse(source)) if isinstance(node, Statement))
