"""Puts probes into the functions of a tree while it is imported: each notes in which test its function ran.

A probe is the statement `__bench__["path::function"] = 1` at the start of a function, and before each statement of a generator
or a coroutine, which may go on in a later test. `__bench__` is what the present test has run. What a module runs while it is
imported, and what runs in a function that writes into a module or a class or keeps its result, is noted for all tests instead:
there `with __bench_shared__("path::function", names)` stands.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from types import CodeType

from bench_code.units import Function, definitions, numbered, own_nodes, parameters, tree_of, yields

KEEPS = re.compile("cache|memo|singleton|lazy|once", re.I)
"""A decorator of such a name keeps what a function computed."""
FILLS = frozenset({"append", "add", "update", "setdefault", "extend", "insert", "appendleft"})
"""Methods that put something into a container."""


def probed(source: bytes, file: str, path: str) -> CodeType:
    """Return the code of a module with probes.

    Args:
        source: The module's text.
        file: The module's file.
        path: The file's path in the tree, with which the names of its functions begin.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: The text cannot be compiled.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python gives a warning of a text only while no compiled file of it is there
        tree, names = tree_of(source), Counter[str]()
        for unit, name in list(definitions(tree, "")):
            if isinstance(unit, Function):
                _probe(unit, f"{path}::{numbered(name, names)}")
        head = 1 if _is_docstring(tree.body[:1]) else 0
        while isinstance(node := next(iter(tree.body[head:]), None), ast.ImportFrom) and node.module == "__future__":
            head += 1
        tree.body[head:] = _within(tree.body[head:], path, ())
        return compile(tree, file, "exec", dont_inherit=True)


def _is_docstring(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(node := body[0], ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def _probe(unit: Function, name: str) -> None:
    """Put probes into a function and those inside it."""
    filled, alone = _filled(unit)
    for node in [each for each in ast.walk(unit) if isinstance(each, Function)]:
        head = 1 if _is_docstring(node.body) else 0
        rest = node.body[head:]
        if isinstance(node, ast.AsyncFunctionDef) or yields(node.body):
            blocks = [each for each in own_nodes(rest) if not isinstance(each, Function | ast.ClassDef | ast.Lambda)]
            for inner, field in ((each, field) for each in blocks for field in ("body", "orelse", "finalbody")):
                if isinstance(block := getattr(inner, field, None), list):
                    setattr(inner, field, _hit_before_each(block, name))
            node.body[head:] = _hit_before_each(rest, name)
        elif filled:
            node.body[head:] = _within(rest, name, sorted(filled) if alone else ())
        else:
            node.body.insert(head, _placed(f"__bench__[{name!r}] = 1", (rest or node.body)[0]))


def _hit_before_each(statements: list[ast.stmt], name: str) -> list[ast.stmt]:
    return [each for node in statements for each in (_placed(f"__bench__[{name!r}] = 1", node), node)]


def _within(statements: list[ast.stmt], name: str, filled: Sequence[str]) -> list[ast.stmt]:
    """Return a statement that runs these, and notes for all tests what they run."""
    if not statements:
        return []
    block = _placed(f"with __bench_shared__({name!r}, {tuple(filled)}): pass", statements[0])
    block.body = statements  # type: ignore[attr-defined]
    return [block]


def _placed(text: str, at: ast.stmt) -> ast.stmt:
    [made] = ast.parse(text).body
    for node in ast.walk(made):
        ast.copy_location(node, at)
    return made


def _filled(unit: Function) -> tuple[set[str], bool]:
    """Return the names of modules and classes that a function writes to, and whether it does so of its own accord.

    It does if its decorator keeps results, or if it returns what it fills, and asks before whether that is there. Its arguments
    may only be the key of it.
    """
    if any(KEEPS.search(ast.unparse(each)) for each in unit.decorator_list):
        return {unit.name}, True
    nodes = [node for statement in unit.body for node in ast.walk(statement)]
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    inner = {node.arg for node in nodes if isinstance(node, ast.arg)} | {"super"}
    inner |= {str(node.name) for node in nodes if isinstance(node, Function | ast.ClassDef | ast.ExceptHandler)}
    local = ({*parameters(unit)} | stored | inner) - shared - {"cls"}
    filled, asked, keys = set[str](shared), set[str](), {"self", "cls"}
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            filled |= _names_of(node, local)
            keys |= _mentioned([node.slice]) if isinstance(node, ast.Subscript) else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLS:
            filled |= _names_of(node.func.value, local)
        elif isinstance(node, ast.If | ast.IfExp | ast.While | ast.Try):
            asked |= _mentioned(node.body if isinstance(node, ast.Try) else [node.test])
    returns = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    return filled, returns and {*parameters(unit)} <= keys and bool(filled & asked)


def _mentioned(nodes: Iterable[ast.AST]) -> set[str]:
    inside = [each for node in nodes for each in ast.walk(node)]
    return {getattr(each, "id", getattr(each, "attr", "")) for each in inside if isinstance(each, ast.Name | ast.Attribute)}


def _names_of(node: ast.expr, local: set[str]) -> set[str]:
    """Return what a store to this expression fills: a module's name, and an attribute of it; nothing if that is local."""
    names = set[str]()
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        names |= {node.attr} if isinstance(node, ast.Attribute) else set()
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name) or node.id in local:
        return names if "__class__" in names else set()
    return names | ({node.id} - {"cls"})
