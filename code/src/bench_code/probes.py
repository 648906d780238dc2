"""Puts probes into the functions of a tree while it is imported: each notes in which test its function ran.

A probe is the statement `__bench__[k] = 1` at the start of a function, and before each statement of a generator or a coroutine,
which may go on in a later test. `__bench__` is what the present test has run. What a module runs while it is imported, and what
runs in a function that keeps a result for later, is noted for all tests instead: there `with __bench_shared__[k]` stands.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

from bench_code.units import Function, definitions, numbered, own_nodes, parameters, tree_of, yields

IMPORT = 0
"""The number of what a module runs while it is imported."""
KEEPS = re.compile("cache|memo|singleton|lazy|once", re.I)
"""A decorator of such a name keeps what a function computed."""
FILLS = frozenset({"append", "add", "update", "setdefault", "extend", "insert", "appendleft"})
"""Methods that put something into a container."""


@dataclass(frozen=True)
class ProbedModule:
    """A module's code with probes.

    code     the code
    numbers  the number of each function, by its qualified name
    fills    for functions that fill something of their own accord, by their numbers: the names of what they fill
    """

    code: CodeType
    numbers: dict[str, int]
    fills: dict[int, list[str]]


def probed(source: bytes, file: str, number: Callable[[str], int]) -> ProbedModule:
    """Return the code of a module with probes.

    Args:
        source: The module's text.
        file: The module's file.
        number: Returns the number of a function, by its qualified name.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: The text cannot be compiled.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python gives a warning of a text only while no compiled file of it is there
        tree, names = tree_of(source), Counter[str]()
        numbers, fills = dict[str, int](), dict[int, list[str]]()
        for unit, name in list(definitions(tree, "")):
            full = numbered(name, names)
            k = numbers[full] = number(full)
            filled, alone = _filled(unit)
            if alone:
                fills[k] = sorted(filled)
            for node in [each for each in ast.walk(unit) if isinstance(each, Function)]:
                _probe(node, k, bool(filled))
        head = sum(1 for _ in _head(tree))
        if rest := tree.body[head:]:
            tree.body[head:] = [_within(rest, IMPORT)]
        return ProbedModule(compile(tree, file, "exec", dont_inherit=True), numbers, fills)


def _head(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements with which a module must begin: its docstring and what it imports from the future."""
    for place, node in enumerate(tree.body):
        if not ((place == 0 and _is_docstring(node)) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            return
        yield node


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _probe(node: Function, k: int, is_shared: bool) -> None:
    """Put probes into a function."""
    docstring = 1 if _is_docstring(node.body[0]) else 0
    rest = node.body[docstring:]
    if isinstance(node, ast.AsyncFunctionDef) or yields(node.body):
        for inner in [*own_nodes(rest)]:
            for field in ("body", "orelse", "finalbody") if not isinstance(inner, (*Function.__args__, ast.ClassDef)) else ():
                block = getattr(inner, field, None)
                if isinstance(block, list) and block:
                    setattr(inner, field, [each for statement in block for each in (_hit(statement, k), statement)])
        node.body[docstring:] = [each for statement in rest for each in (_hit(statement, k), statement)]
    elif is_shared and rest:
        node.body[docstring:] = [_within(rest, k)]
    else:
        node.body.insert(docstring, _hit((rest or node.body)[0], k))


def _hit(at: ast.stmt, k: int) -> ast.stmt:
    return _placed(f"__bench__[{k}] = 1", at)


def _within(statements: list[ast.stmt], k: int) -> ast.stmt:
    """Return a statement that runs these, and notes for all tests what they run."""
    block = _placed(f"with __bench_shared__[{k}]: pass", statements[0])
    assert isinstance(block, ast.With)
    block.body = statements
    return block


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
    nodes = [node for statement in unit.body for node in ast.walk(statement)]
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    inner = {node.arg for node in nodes if isinstance(node, ast.arg)}
    local = ({*parameters(unit)} | stored | inner) - shared - {"cls"}
    filled, asked, keys = set[str](shared), set[str](), {"self", "cls"}
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            filled |= _names_of(node, local)
            keys |= _mentioned([node.slice]) if isinstance(node, ast.Subscript) else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLS:
            filled |= _names_of(node.func.value, local)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            asked |= _mentioned([node.test])
        elif isinstance(node, ast.Try):
            asked |= _mentioned(node.body)
    if any(KEEPS.search(ast.unparse(each)) for each in unit.decorator_list):
        return filled | {unit.name}, True
    returns = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    return filled, returns and {*parameters(unit)} <= keys and bool(filled & asked)


def _mentioned(nodes: Sequence[ast.AST]) -> set[str]:
    inside = [each for node in nodes for each in ast.walk(node)]
    return {
        each.id if isinstance(each, ast.Name) else each.attr for each in inside if isinstance(each, ast.Name | ast.Attribute)
    }


def _names_of(node: ast.expr, local: set[str]) -> set[str]:
    """Return what a store to this expression fills: a module's name, and an attribute of it; nothing if that is local."""
    names = set[str]()
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name) or node.id in local:
        return set() if "__class__" not in names else names
    return names | ({node.id} - {"cls"})


def read_probed(parts: object) -> ProbedModule | None:
    """Return the code that was stored as these parts; None if it was not stored by us."""
    match parts:
        case (CodeType() as code, dict() as numbers, dict() as fills):
            return ProbedModule(code, numbers, fills)
    return None
