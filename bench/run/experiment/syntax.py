"""Write a module's syntax tree as text, without docstrings, comments and layout.

The text has every name, constant, operator, default and decorator. It is the same on each version of Python that can parse the
module: fields that only some versions have are empty for older syntax, and empty fields are left out.
"""

from __future__ import annotations

import ast
from typing import Any

IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields that follow from other fields, or change nothing that the module does."""


def syntax_of(node: Any) -> str:
    """Return a syntax tree as text.

    Args:
        node: A tree from `ast.parse`, or a value in it.

    Returns:
        ASCII text: whether other characters are printable depends on the version of Python.
    """
    if isinstance(node, ast.JoinedStr):  # Python 3.12 adds empty texts to nested format specifications
        return f"JoinedStr({syntax_of([part for part in node.values if getattr(part, 'value', None) != ''])})"
    if isinstance(node, ast.AST):
        fields = [(name, getattr(node, name)) for name in node._fields if name not in IGNORED_FIELDS]
        non_empty = [f"{name}={syntax_of(value)}" for name, value in fields if value is not None and value != []]
        return f"{type(node).__name__}({', '.join(non_empty)})"
    if isinstance(node, list):
        return f"[{', '.join([syntax_of(item) for item in node if not _does_nothing(item)])}]"
    return ascii(node)


def _does_nothing(node: Any) -> bool:
    """Return whether a node is a statement without an effect: a docstring, or another constant, or `pass`."""
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
