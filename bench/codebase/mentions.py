"""The names that code mentions, whichever module they are of."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

ANY = "*"
"""A mention of names that the text does not tell, such as by `getattr` with a computed name."""
STAR = "*import"
"""A mention of all names of a module that is imported with a star."""
BARE = "*"
"""Stands before a name that is mentioned without a further name after it: a module may have been handed over as a whole."""
BY_TEXT = frozenset({"patch", "resolve_name", "locate", "import_module", "__import__"})
"""Functions that are given the name of a module, or of what is in it, as a text."""
OWN_NAMES = frozenset({"globals", "locals", "vars", "dir"})
"""Functions that look at the names around them where they are given nothing else to look at."""
DYNAMIC = frozenset(
    ["eval", "exec", "__globals__", "f_globals", "f_locals", "getmodule", "__subclasses__", "modules", "pickle", "dill"]
).union(["cloudpickle", "copyreg", "doctest", "testmod", "run_module", "run_path"])
"""Names by whose mention code can reach names that it does not mention, of modules that it does not mention either."""
WORDS = re.compile(r"[^\W\d]\w*")


def mentions(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that code mentions: identifiers, and words in its texts other than docstrings."""
    waiting, followed = list(nodes), set[int]()
    while waiting:
        node = waiting.pop()
        yield from SPOKEN[type(node)](node) if type(node) in SPOKEN else ()
        if isinstance(node, ast.Attribute) and node.attr != "__dict__":
            followed.add(id(node.value))
        if isinstance(node, ast.Name | ast.Attribute):
            word = node.id if isinstance(node, ast.Name) else node.attr
            if isinstance(node.ctx, ast.Load) and id(node) not in followed:
                yield BARE + word
            if word in DYNAMIC:
                yield ANY
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):  # a docstring
            waiting.extend(ast.iter_child_nodes(node))


def _of_import(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        yield from (node.module or "").split(".")
    for name in names:
        yield from (STAR,) if name == "*" else name.split(".")
    for alias in node.names:
        yield BARE + alias.name.rpartition(".")[2]
        if alias.asname:
            yield alias.asname


def _of_call(call: ast.Call) -> Iterator[str]:
    """What a call mentions beside the names in it: a module that is named by a text, or any name at all."""
    function = call.func
    word = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    if word in OWN_NAMES and not call.args:
        yield ANY
    if word in BY_TEXT and call.args:
        text = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
        yield BARE + text.rpartition(".")[2] if isinstance(text, str) else ANY


SPOKEN: dict[type[ast.AST], Callable[[Any], Iterable[str]]] = {
    ast.Name: lambda node: (node.id,),
    ast.Attribute: lambda node: (node.attr,),
    ast.Import: _of_import,
    ast.ImportFrom: _of_import,
    ast.Global: lambda node: node.names,
    ast.Nonlocal: lambda node: node.names,
    ast.FunctionDef: lambda node: (node.name,),
    ast.AsyncFunctionDef: lambda node: (node.name,),
    ast.ClassDef: lambda node: (node.name,),
    ast.MatchClass: lambda node: node.kwd_attrs,
    ast.Constant: lambda node: WORDS.findall(node.value) if isinstance(node.value, str) else (),
    ast.Call: _of_call,
}
"""What a node of each type mentions, without the nodes in it."""
