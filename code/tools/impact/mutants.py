"""Small edits of a package's functions: each changes one operator, comparison, constant or returned value."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is",
    ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
COMPUTED: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "*"}


@dataclass(frozen=True)
class Mutant:
    """One edit: a file has another content. `what` says how, and `is_body` whether only the body of a function changed."""

    path: str
    line: int
    what: str
    content: str
    is_body: bool = False


def mutants(root: Path, folder: str, seed: int) -> Iterator[Mutant]:
    """Yield all mutants of all files of a folder, tests left out, in a drawn order."""
    files = [file for file in sorted((root / folder).rglob("*.py")) if "test" not in file.relative_to(root / folder).as_posix()]
    every = [place for file in files for place in _places_of(file)]
    for file, text, node, new, is_body in random.Random(seed).sample(every, len(every)):
        what = " ".join(f"{ast.get_source_segment(text, node)} -> {new}".split())
        yield Mutant(str(file.relative_to(root)), node.lineno, what[:40], replaced(text, node, new), is_body)


def _places_of(file: Path) -> Iterator[tuple[Path, str, ast.expr | ast.stmt, str, bool]]:
    """Yield what can change of a file: the file, its text, the node, the text in its place, and whether it is of a body."""
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for statement in function.body for node in ast.walk(statement)}
    for node in ast.walk(tree):
        new = _changed(node)
        if new is not None and isinstance(node, ast.expr | ast.stmt):
            yield file, text, node, new, id(node) in inside


def replaced(text: str, node: ast.expr | ast.stmt, new: str) -> str:
    """Return a text with another text in the place of a node."""
    lines = text.splitlines(keepends=True)
    start = len("".join(lines[: node.lineno - 1]).encode()) + node.col_offset
    end = len("".join(lines[: (node.end_lineno or node.lineno) - 1]).encode()) + (node.end_col_offset or 0)
    raw = text.encode()
    return (raw[:start] + new.encode() + raw[end:]).decode()


def _changed(node: ast.AST) -> str | None:
    """Another text for a node; None where it is left as it is."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        rest = [ast.unparse(part) for part in node.comparators]
        return f"({ast.unparse(node.left)} {COMPARED[type(node.ops[0])]} {rest[0]})" if len(rest) == 1 else None
    if isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        return f"({ast.unparse(node.left)} {COMPUTED[type(node.op)]} {ast.unparse(node.right)})"
    if isinstance(node, ast.BoolOp):
        return (
            "(" + (" and " if isinstance(node.op, ast.Or) else " or ").join(ast.unparse(value) for value in node.values) + ")"
        )
    if isinstance(node, ast.Return) and node.value is not None:
        return "return None" if not isinstance(node.value, ast.Constant) else "return 77"
    if isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        return repr(node.value + 1 if type(node.value) is int else not node.value)
    return None
