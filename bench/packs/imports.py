"""The import statements in a file of Python, by whose trail its digest finds what else belongs to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

Statement = ast.Import | ast.ImportFrom


@lru_cache(maxsize=1024)
def statements_of(source: bytes) -> tuple[Statement, ...]:
    """Return the imports of a source, wherever in it they stand. They are read once for the same source: each instance of a
    pack, and each architecture in one folder, asks anew. Raises SyntaxError or ValueError for what is no Python."""
    return tuple(node for node in ast.walk(ast.parse(source)) if isinstance(node, Statement))


@lru_cache(maxsize=1024)
def run_statements_of(source: bytes) -> tuple[Statement, ...]:
    """The same without those that stand for types alone, below `if TYPE_CHECKING:`."""
    return tuple(_run(ast.parse(source)))


def _run(node: ast.AST) -> Iterator[Statement]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Statement):
            yield child
        elif isinstance(child, ast.If) and _name(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from _run(ast.Module([other], []))
        else:
            yield from _run(child)


def _name(test: ast.expr) -> str:
    """`TYPE_CHECKING`, of that and of `typing.TYPE_CHECKING`."""
    return test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
