"""The import statements of a Python file. A digest uses them to find the other files that belong to a pack."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

Statement = ast.Import | ast.ImportFrom


def statements_of(path: Path) -> tuple[Statement, ...]:
    """Return all imports of a file, at any place in it. A file that cannot be read, or is no Python, has no imports: either
    nothing imports the file, or the pack does not load."""
    try:
        return _imports_in(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()


@lru_cache(maxsize=1024)
def _imports_in(source: bytes) -> tuple[Statement, ...]:
    """Return the imports in source code. The result is cached, because each instance of a pack asks again."""
    return tuple(node for node in ast.walk(ast.parse(source)) if isinstance(node, Statement))


def executed_imports_in(node: ast.AST) -> Iterator[Statement]:
    """Yield the imports in a syntax tree that are executed, without the imports below `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Statement):
            yield child
        elif isinstance(child, ast.If) and ast.unparse(child.test).rpartition(".")[2] == "TYPE_CHECKING":
            for other in child.orelse:
                yield from executed_imports_in(ast.Module([other], []))
        else:
            yield from executed_imports_in(child)
