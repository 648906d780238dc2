"""Code that a model writes in two variants of this pack: one line of a module, or a test of a few asserts.

Both are small forms. They are bounded, parsed and rendered anew before anything is made of them, and run in the sandbox alone.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

LONGEST_LINE, LONGEST_TEST, MOST_NODES, MOST_ASSERTS = 160, 1200, 80, 6
IN_LINE = (
    *(ast.Expression, ast.Load, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.keyword),
    *(ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.cmpop, ast.boolop),
    *(ast.USub, ast.Not, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
)
"""What a line is made of: an expression without powers, shifts, comprehensions and functions of its own."""
FORM_OF_ASSERT = "each line of a test is `assert answer(ROWS, NUMBER) == LITERAL`; ROWS, or a list of orders of its own"


@dataclass(frozen=True)
class Assertion:
    """One assert of a test. `rows` are the orders in which it looks; None means the orders of the tests."""

    rows: list[Any] | None
    order: Any
    expects: Any

    @property
    def text(self) -> str:
        return f"assert answer({'ROWS' if self.rows is None else self.rows}, {self.order!r}) == {self.expects!r}"


class Unfit(ValueError):
    """A written text does not have its form. The message says why in one line."""


def line_of(text: str) -> str:
    """Return a written line in the form that a module contains. Raises Unfit."""
    if len(text) > LONGEST_LINE or "\n" in text.strip():
        raise Unfit(f"a line is one expression of at most {LONGEST_LINE} characters")
    nodes = list(ast.walk(_parsed(text.strip(), "eval")))
    if len(nodes) > MOST_NODES:
        raise Unfit(f"the line has more than {MOST_NODES} parts")
    for node in nodes:
        if not isinstance(node, IN_LINE):
            raise Unfit(f"a line cannot hold {type(node).__name__}")
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name.startswith("_"):
            raise Unfit(f"a line cannot name {name}")
    return ast.unparse(nodes[0])


def asserts_of(text: str) -> tuple[Assertion, ...]:
    """Return the asserts of a written test, each once. Raises Unfit."""
    if len(text) > LONGEST_TEST:
        raise Unfit(f"a test has at most {LONGEST_TEST} characters")
    body = _parsed(text, "exec").body
    if not 1 <= len(body) <= MOST_ASSERTS:
        raise Unfit(f"a test has 1 to {MOST_ASSERTS} asserts, one a line")
    return tuple({each.text: each for each in map(_assert_of, body)}.values())


def _assert_of(node: ast.stmt) -> Assertion:
    match node:
        case ast.Assert(ast.Compare(ast.Call(ast.Name("answer"), [rows, order], []), [ast.Eq() | ast.Is()], [expects]), None):
            try:
                given = None if isinstance(rows, ast.Name) and rows.id == "ROWS" else ast.literal_eval(rows)
                made = Assertion(given, ast.literal_eval(order), ast.literal_eval(expects))
            except (ValueError, TypeError, MemoryError, RecursionError) as error:
                raise Unfit(FORM_OF_ASSERT) from error
            if isinstance(made.order, int) and (given is None or _are_orders(given)):
                return made
    raise Unfit(FORM_OF_ASSERT)


def _are_orders(rows: object) -> bool:
    return isinstance(rows, list) and all(
        isinstance(row, dict) and all(isinstance(value, int | str) for value in (*row, *row.values())) for row in rows
    )


def _parsed(text: str, mode: str) -> Any:
    try:
        return ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise Unfit(f"it is no Python: {error}".partition("\n")[0]) from error


def mutants_of(text: str) -> tuple[str, ...]:
    """Return the texts of a module with one operator, number, comparison, keyword or result changed."""
    tree = ast.parse(text)
    count = sum(len(list(_changes(node))) for node in ast.walk(tree))
    made = [_changed(tree, number) for number in range(count)]
    return tuple(dict.fromkeys(mutant for mutant in made if mutant != ast.unparse(tree)))


def _changed(tree: ast.Module, number: int) -> str:
    mutant = copy.deepcopy(tree)
    change = [change for node in ast.walk(mutant) for change in _changes(node)][number]
    change()
    return ast.unparse(ast.fix_missing_locations(mutant))


SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Is: ast.IsNot, ast.Eq: ast.NotEq, ast.Lt: ast.LtE},
    **{ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
}


def _changes(node: ast.AST) -> Iterator[Callable[[], None]]:
    """Yield the possible changes at a node."""
    match node:
        case ast.BinOp(op=op) if type(op) in SWAPPED:
            yield lambda: setattr(node, "op", SWAPPED[type(op)]())
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            yield lambda: setattr(node, "ops", [SWAPPED[type(op)]()])
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield lambda: setattr(node, "value", value + 1)
        case ast.Call(keywords=[_, *_]):
            yield lambda: setattr(node, "keywords", node.keywords[1:])
        case ast.Return(value=ast.expr()):
            yield lambda: setattr(node, "value", ast.Constant(0))
