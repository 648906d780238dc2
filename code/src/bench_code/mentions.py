"""Finds the names that code mentions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

from bench_code.units import parameters

ANY = "?"
"""The mention of code that can reach names which its text does not contain, for example by a call of `eval`."""
STAR = "?star"
"""The mention of `from module import *`, which takes all public names of the module."""
BARE = "*"
"""The prefix of a name with no attribute after it: the code may pass a whole module on by that name."""
PLAIN = ":"
"""The prefix of a name with no dot before it: a name of the module of the code, or a builtin."""
VALUE = "="
"""The prefix of a name that is not called where it stands, so that its value may go elsewhere, and of a word in a text."""
BY_TEXT = frozenset({"patch", "resolve_name", "locate", "import_module", "__import__"})
"""Functions whose first argument is the name of a module, or of a member of a module, as a text."""
OWN_NAMES = frozenset({"globals", "locals", "vars", "dir"})
"""Functions that return the names around the call when they get no argument."""
DYNAMIC = frozenset(
    ["eval", "exec", "__globals__", "f_globals", "f_locals", "getmodule", "__subclasses__", "modules", "pickle", "dill"]
).union(
    *(["cloudpickle", "copyreg", "doctest", "testmod", "run_module", "run_path", "compile", "marshal", "dis", "__code__"],),
    *(["module_from_spec", "spec_from_file_location", "spec_from_loader", "find_spec", "exec_module", "load_module"],),
    *(["iter_modules", "walk_packages", "find_loader", "getmembers", "getmembers_static", "getattr_static", "attrgetter"],),
    *(["methodcaller", "import_string", "entry_points", "getsource", "getsourcelines", "getsourcefile", "reload"],),
    *(["currentframe", "_getframe", "get_type_hints", "__getattribute__", "create_module"],),
)
"""Names through which code can reach other names, and other modules, that its text does not contain."""
BY_NAME = frozenset({"getattr", "hasattr", "setattr", "delattr"})
"""Functions whose second argument is the name of a member, as a text."""
WORDS = re.compile(r"[^\W\d]\w*")


def mentions(nodes: Iterable[ast.AST], local: Set[str] = frozenset()) -> Iterator[str]:
    """Yield the names that code mentions: identifiers, and the words in its texts other than docstrings.

    Args:
        nodes: The syntax trees of the code.
        local: The local variables of the function around the code. They hold nothing that the function or its caller does not
            mention elsewhere, so a local variable is no mention.
    """
    waiting, followed, called = list(nodes), set[int](), set[int]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            called.add(id(node.func))
        if isinstance(node, ast.Attribute) and node.attr != "__dict__":
            followed.add(id(node.value))
        if isinstance(node, ast.Name) and node.id in local:
            continue
        yield from MENTIONED[type(node)](node) if type(node) in MENTIONED else ()
        if isinstance(node, ast.Name | ast.Attribute):
            word = node.id if isinstance(node, ast.Name) else node.attr
            if isinstance(node.ctx, ast.Load) and id(node) not in followed:
                yield BARE + word
            if isinstance(node.ctx, ast.Load) and id(node) not in called:
                yield VALUE + word
            if word in DYNAMIC or (word in BY_TEXT | OWN_NAMES | BY_NAME and id(node) not in called | followed):
                yield ANY
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):  # a docstring
            waiting.extend(ast.iter_child_nodes(node))


def mentions_in(path: str, mentioned: Iterable[str]) -> frozenset[str]:
    """Return what code of a module mentions. A name of the module itself has the module's path before it."""
    return frozenset(path + word if word.startswith(PLAIN) else word for word in mentioned)


def body_mentions(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the names that the body of a function mentions."""
    return frozenset(mentions(function.body, _local_variables(function)))


def _local_variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the variables that are local wherever the body of a function reads them.

    A variable is left out if an import binds it, if any `global` statement names it, or if a class in the body binds it: the
    class reads it from the module then.
    """
    local = set(parameters(function))
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            local.add(node.id)
        if not isinstance(node, INNER_SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    for node in (inner for statement in function.body for inner in ast.walk(statement)):
        if isinstance(node, ast.Global):
            local -= set(node.names)
        elif isinstance(node, ast.ClassDef):
            local -= {
                inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load)
            }
            local -= {
                inner.name
                for inner in ast.walk(node)
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            }
        elif isinstance(node, ast.Import | ast.ImportFrom):
            local -= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return local


INNER_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
"""Nodes in which an assignment binds no variable of the function around them."""


def _of_import(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        yield from (node.module or "").split(".")
    for name in names:
        yield from (STAR,) if name == "*" else name.split(".")
    for alias in node.names:
        yield BARE + alias.name.rpartition(".")[2]
        if alias.asname:
            yield VALUE + alias.name
        if alias.asname and alias.name in DYNAMIC | OWN_NAMES | BY_TEXT:  # a use of the alias does not show what it is
            yield ANY


def _of_call(call: ast.Call) -> Iterator[str]:
    """Yield what a call mentions beside the names in it: the module that a text names, or `ANY`."""
    function = call.func
    word = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    if word in OWN_NAMES and not call.args:
        yield ANY
    if word in BY_TEXT and call.args:
        yield _named_by(call.args[0]) or ANY
    if word in BY_NAME:  # what it returns may be a module of a package
        yield (_named_by(call.args[1]) if len(call.args) > 1 else "") or ANY


def _of_text(text: str) -> Iterator[str]:
    for word in WORDS.findall(text):
        yield from (word, VALUE + word)


def _named_by(node: ast.expr) -> str:
    """Return the mention of the module, or the member of a module, that a text names; "" if the text is not a constant."""
    text = node.value if isinstance(node, ast.Constant) else None
    return BARE + text.rpartition(".")[2] if isinstance(text, str) else ""


MENTIONED: dict[type[ast.AST], Callable[[Any], Iterable[str]]] = {
    ast.Name: lambda node: (PLAIN + node.id,),
    ast.Attribute: lambda node: (node.attr,),
    ast.Import: _of_import,
    ast.ImportFrom: _of_import,
    ast.Global: lambda node: node.names,
    ast.Nonlocal: lambda node: node.names,
    ast.MatchClass: lambda node: node.kwd_attrs,
    ast.Constant: lambda node: _of_text(node.value) if isinstance(node.value, str) else (),
    ast.Call: _of_call,
}
"""For each type of node, the function that yields what such a node mentions, without the nodes inside it."""
