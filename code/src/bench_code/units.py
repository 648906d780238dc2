"""Divides a module's source into the bodies of its functions and the skeleton, which is the rest.

A function's body has its statements, with all functions and classes inside, and the names of its parameters; it lacks the
docstring. The skeleton has everything else: imports, constants, class members, signatures, decorators, annotations and
docstrings. It also says whether a function is a generator or a coroutine and whether it is closed over its class, since a
caller can tell that without running the body.

Digests are made from the syntax tree, so white space, comments and redundant parentheses change no version. A test that reads
source text depends on the whole file, because the file is seen being opened. Only a test that looks at line numbers is not
covered.
"""

from __future__ import annotations

import ast
import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from tokenize import detect_encoding
from typing import Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef
MAX_MARKS = 1000
TEST_FILE = re.compile(r"\b(?:test_\w+|\w+_test)\b")
"""The names of files that hold tests, without their ends, where some text mentions them."""
NOT_ASCII = re.compile(rf"[^\x00-\x7f]{{{MAX_MARKS},}}")


@dataclass(frozen=True)
class Unit:
    """A function or a class of a module.

    name     its qualified name; the second definition of a name ends in "#2"
    kind     "function" or "class"
    first    its first line, which is the line of its first decorator
    last     its last line
    digest   the digest of a function's body, or of a class without the bodies of its methods
    """

    name: str
    kind: Literal["function", "class"]
    first: int
    last: int
    digest: str


@dataclass(frozen=True)
class Module:
    """The versions in one file.

    skeleton   the digest of its skeleton; of a file that does not parse, of its whole content
    units      its functions and classes in the order of their lines
    broken     why it cannot be parsed; "" if it can
    helpers    the digest of all but its functions of tests
    mentions   the names of files of tests that it mentions
    """

    skeleton: str
    units: tuple[Unit, ...]
    broken: str = ""
    helpers: str = ""
    mentions: tuple[str, ...] = ()

    @cached_property
    def code(self) -> str:
        """The digest of the whole file, without its comments and layout."""
        return digest(" ".join((self.skeleton, *self.bodies, *self.bodies.values())))

    @cached_property
    def functions(self) -> tuple[Unit, ...]:
        return tuple(unit for unit in self.units if unit.kind == "function")

    @cached_property
    def bodies(self) -> dict[str, str]:
        """The digest of each function's body, by the function's name."""
        return {unit.name: unit.digest for unit in self.functions}

    def why_not(self, path: str, name: str) -> str:
        """Return a sentence that says why the file at this path has no unit of this name."""
        return f"{path} does not parse: {self.broken}" if self.broken else f"{path} has no function or class '{name}'"

    @cached_property
    def _starts(self) -> list[int]:
        return [unit.first for unit in self.functions]

    def function_at(self, line: int) -> Unit | None:
        """Return the function that contains a line; None if the line belongs to the skeleton."""
        at = bisect_right(self._starts, line) - 1
        return self.functions[at] if at >= 0 and line <= self.functions[at].last else None


def digest(content: bytes | str) -> str:
    """Return a short digest of a content."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content).hexdigest()[:20]


@lru_cache(maxsize=4096)
def parse(source: bytes) -> Module:
    """Return the versions in a source text. A text is parsed once, since a step and a module's record both need it.

    Args:
        source: The bytes of a Python file.

    Returns:
        Its skeleton and units. A file that does not parse is one skeleton, and `broken` says why.
    """
    mentions = tuple(sorted({*TEST_FILE.findall(source.decode("utf-8", "replace"))}))
    try:
        tree = tree_of(source)
        names, defined = Counter[str](), [*definitions(tree, "")]
        units = [parted(node, name, names) for node, name in defined if isinstance(node, Function)]
        skeleton = digest(ast.dump(tree, annotate_fields=False))  # the bodies are out of the tree by now
        helpers = digest("\n".join(_helpers(tree, units)))
        held = ((node, name) for node, name in defined if isinstance(node, ast.ClassDef))
        classes = [_unit(node, name, "class", digest(ast.dump(node, annotate_fields=False))) for node, name in held]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
        return Module(digest(source), (), where, digest(source), mentions)
    in_order = tuple(sorted((*units, *classes), key=lambda unit: (unit.first, -unit.last)))
    return Module(skeleton, in_order, "", helpers, mentions)


def is_test(name: str) -> bool:
    """Return whether a function of this qualified name is a test, if its file holds tests."""
    return name.rpartition(".")[2].startswith("test")


def _helpers(tree: ast.Module, units: list[Unit]) -> Iterator[str]:
    """Yield the dumps of all but plain functions of tests, and the digests of the other functions' bodies."""
    for node in tree.body:
        if not (isinstance(node, Function) and is_test(node.name) and not node.decorator_list):
            yield ast.dump(node, annotate_fields=False)
    yield from (f"{unit.name} {unit.digest}" for unit in units if not is_test(unit.name))


def tree_of(source: bytes | str) -> ast.Module:
    """Return the syntax tree of a source text. Raises what `ast.parse` raises, and ValueError for a text that would take very
    long: Python orders the combining marks of a name in time squared."""
    text = ""
    with suppress(SyntaxError, UnicodeDecodeError, LookupError):
        text = source if isinstance(source, str) else source.decode(detect_encoding(BytesIO(source).readline)[0])
    for run in () if text.isascii() else NOT_ASCII.finditer(text):
        if sum(map(bool, map(unicodedata.combining, run[0]))) > MAX_MARKS:
            raise ValueError(f"it has more than {MAX_MARKS:,} combining marks in a row")
    return ast.parse(source)


def definitions(node: ast.AST, prefix: str) -> Iterator[tuple[Function | ast.ClassDef, str]]:
    """Yield the functions and classes of a tree that stand in no function, with their names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            yield child, prefix + child.name
        if not isinstance(child, Function | ast.expr):
            yield from definitions(child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix)


def parted(node: Function, name: str, names: Counter[str]) -> Unit:
    """Return the unit of a function, and remove its body from the tree. The docstring stays, and the function's kind."""
    name = numbered(name, names)
    docstring = [node.body.pop(0)] if ast.get_docstring(node, clean=False) is not None else []
    unit = _unit(
        node,
        name,
        "function",
        digest(ast.dump(ast.Module(node.body, []), annotate_fields=False) + " ".join(parameters(node))),
    )
    node.body = [*docstring, ast.Expr(ast.Constant(f"{yields(node.body)} {_is_closed(node.body)}"))]
    return unit


def numbered(name: str, names: Counter[str]) -> str:
    """Return the name of a module's next definition of a name: the second one ends in "#2"."""
    names[name] += 1
    return name if names[name] == 1 else f"{name}#{names[name]}"


def parameters(node: Function) -> list[str]:
    """Return the names of a function's parameters. They are local variables of its body."""
    given = node.args
    return [
        argument.arg
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg)))
    ]


def own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without what stands within the functions and classes inside it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def yields(body: list[ast.stmt]) -> bool:
    """Return whether these statements make their function a generator."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(body))


def _is_closed(body: list[ast.stmt]) -> bool:
    """Return whether a method with this body holds its class in a closure."""
    nodes = (node for statement in body for node in ast.walk(statement))
    return any(isinstance(node, ast.Name) and node.id in ("super", "__class__") for node in nodes)


def _unit(node: Function | ast.ClassDef, name: str, kind: Literal["function", "class"], of: str) -> Unit:
    first = min((node.lineno, *(decorator.lineno for decorator in node.decorator_list)))
    return Unit(name, kind, first, node.end_lineno or node.lineno, of)
