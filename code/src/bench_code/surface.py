"""Reads the statements of a module outside of all functions, with the names that each of them binds and mentions.

So a change of one constant reaches only the code that mentions the constant, and not all code that imports the module.
A statement is a binding if it binds names, does nothing else and cannot fail.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bench_code.mentions import ANY, BARE, VALUE, body_mentions, mentions
from bench_code.scope import Scope, bound_names, of_module
from bench_code.standard import is_loaded
from bench_code.units import Function, definitions, digest, parted, tree_of

Kind = Literal["binding", "import", "test", "other"]
CALLED_BY_NAME = re.compile(
    r"(setup|teardown|setUp|tearDown|pytest|test|Test|load_tests|collect_ignore).*|__(?!all|version|author)\w+"
)
"""Names that Python or a test runner looks for at the top of a module, such as the names of tests."""

OF_DOCSTRINGS = ("__doc__", "getdoc", "help", "render_doc", "pydoc", "doctest", "docopt", "yacc", "lex", "Cmd")
OF_SIGNATURES = ("signature", "getfullargspec", "getcallargs", "__defaults__", "__kwdefaults__", "autospec", "create_autospec")
"""Names of what reads docstrings, and of what reads the defaults of a function that it does not call."""


@dataclass(frozen=True)
class TopStatement:
    """A statement at the top of a module, without the bodies of functions.

    kind       "binding" if it binds names, does nothing else and cannot fail; "import" if it is another import; "test" if it
               binds names and does nothing else, but test runners look for it; else "other"
    binds      the names that it binds
    mentions   the names that it mentions, as `bench_code.mentions` writes them
    digest     the digest of its syntax tree, without its parts
    imports    the imported module as it is written, then a blank and the imported name; "" if it is no import
    parts      the digests of what few users read: of docstrings, by "", and of defaults, by the function's qualified name
    """

    kind: Kind
    binds: frozenset[str]
    mentions: frozenset[str]
    digest: str
    imports: str = ""
    parts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Surface:
    """A module's statements outside of functions, and for each function's body, by its digest, the names that it mentions."""

    statements: tuple[TopStatement, ...]
    bodies: dict[str, frozenset[str]]


def surface_of(source: bytes) -> Surface | None:
    """Return the surface of a source text; None if the text does not parse, or is nested too deeply."""
    try:
        return _surface_of(tree_of(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _surface_of(tree: ast.Module) -> Surface:
    counted: Counter[str] = Counter()
    bodies: dict[str, frozenset[str]] = {}
    for node, name in definitions(tree, ""):
        mentioned = body_mentions(node)
        unit = parted(node, name, counted)
        bodies[unit.digest] = bodies.get(unit.digest, frozenset()) | mentioned
    scope = Scope(tree)
    return Surface(tuple(_statements(scope, tree.body)), bodies)


def readers_of(part: str) -> frozenset[str]:
    """Return the mentions of code that may read a part of a statement without a call of the function, by the part's key."""
    readers = OF_SIGNATURES if part else OF_DOCSTRINGS
    *outer, name = part.split(".")
    handed = {*outer, name} if name.startswith("__") else {name} - {""}  # Python calls a special method for its class
    return frozenset({*readers, *(BARE + each for each in readers), *(VALUE + each for each in handed)})


def drawn_at(source: str, line: int) -> frozenset[str]:
    """Return the names that a statement at the top of a module binds, if it does nothing else but to ask the standard library
    for a value.

    Args:
        source: The text of the module.
        line: A line of the statement.

    Returns:
        The names; none if the statement may do more, or if another statement may bind one of them.
    """
    try:
        tree = tree_of(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    scope = Scope(tree)
    for node in tree.body:
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            if not isinstance(node, ast.Assign) or not scope.is_of_library(node.value):
                return frozenset()
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
            bound = [word for inner in ast.walk(tree) for word in bound_names(inner) if word in names]
            return frozenset(names if len(names) == len(node.targets) == len(bound) else ())
        list(_statements(scope, [node]))
    return frozenset()


def _statements(scope: Scope, nodes: Iterable[ast.stmt]) -> Iterator[TopStatement]:
    """Yield the statements that run when the module is imported. An import of two names yields two statements."""
    for node in nodes:
        if isinstance(node, ast.Pass):
            continue
        decided = scope.decided(node.test) if isinstance(node, ast.If) else None
        if isinstance(node, ast.If) and decided is not None:
            yield from _statements(scope, node.body if decided else node.orelse)
        elif isinstance(node, ast.Import):
            yield from (_statement(scope, ast.Import([alias])) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (_statement(scope, ast.ImportFrom(node.module, [alias], node.level)) for alias in node.names)
        else:
            yield _statement(scope, node)


def _statement(scope: Scope, node: ast.stmt) -> TopStatement:
    binds = frozenset(word for inner in of_module(node) for word in bound_names(inner))
    kind: Kind = "other"
    mentioned_names, imports = frozenset(mentions([node])), ""
    if isinstance(node, ast.Import | ast.ImportFrom):
        kind, imports = "import", _imported(node)
        if is_loaded(*imports.split()) and not any(map(CALLED_BY_NAME.fullmatch, binds)):
            kind, mentioned_names = "binding", mentioned_names & {ANY}  # it depends on no name of the tree
    elif _is_main(node):
        kind, binds = "binding", frozenset({"__main__"})
    elif scope.binds_alone(node) and not any(map(CALLED_BY_NAME.fullmatch, binds)):
        kind = "binding"
    elif isinstance(node, Function | ast.ClassDef | ast.Assign) and not any(word.startswith("__") for word in binds):
        scope.of_tests = True
        kind = "test" if scope.binds_alone(node) else "other"
        scope.of_tests = False
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        binds = frozenset({"__doc__"})
    if kind == "other":
        scope.forget(binds)
    else:
        scope.learn(node)
    parts = tuple(_parts_of(scope, node, "")) if isinstance(node, Function | ast.ClassDef) else ()  # they are taken out of it
    return TopStatement(kind, binds, mentioned_names, digest(ast.dump(node, annotate_fields=False)), imports, parts)


def _parts_of(scope: Scope, node: Function | ast.ClassDef, within: str) -> Iterator[tuple[str, str]]:
    """Take docstrings and plain defaults out of a function or a class, and yield their digests. What an unknown decorator
    or metaclass gets may be read by it, and stays."""
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    keywords = node.keywords if isinstance(node, ast.ClassDef) else ()
    if not all(map(scope.is_reader_of_none, (*called, *(keyword.value for keyword in keywords)))):
        return
    if ast.get_docstring(node, clean=False) is not None:
        yield "", digest(ast.dump(node.body.pop(0), annotate_fields=False))
    if isinstance(node, ast.ClassDef):
        for member in node.body:
            if isinstance(member, Function | ast.ClassDef):
                yield from _parts_of(scope, member, f"{within}{node.name}.")
        return
    for defaults in (node.args.defaults, node.args.kw_defaults):
        for at, value in enumerate(defaults):
            if isinstance(value, ast.Constant):
                yield f"{within}{node.name}", digest(f"{at} {value.value!r}")
                defaults[at] = ast.Constant(None)


def _imported(node: ast.Import | ast.ImportFrom) -> str:
    """Return what an import of one name imports: the module as it is written, then a blank and the name."""
    name = node.names[0].name
    return name if isinstance(node, ast.Import) else f"{'.' * node.level}{node.module or ''} {name}"


def _is_main(node: ast.stmt) -> bool:
    """Return whether a statement runs only if the module is run as a program."""
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test).replace('"', "'") == "__name__ == '__main__'"
