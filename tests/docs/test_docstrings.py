"""The public API tells each argument, what is returned, and what is raised. Ruff's rules `D` hold the form of what is told."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef
ATTRIBUTES = ("property", "cached_property", "kept")
"""Decorators that make a function read as an attribute."""


def public_modules() -> list[Path]:
    """Return the modules that ruff holds to documentation in full."""
    ignores = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]["per-file-ignores"]
    [pattern] = [pattern for pattern, rules in ignores.items() if pattern.startswith("!") and rules == ["D"]]
    parts = re.findall(r"([\w/]+)/\{([^{}]+)\}", pattern)  # a folder, and the modules of it
    return [ROOT / folder / f"{name}.py" for folder, names in parts for name in names.split(",")]


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.relative_to(ROOT).as_posix())
def test_a_public_function_tells_its_arguments_and_what_it_returns(module: Path) -> None:
    lacking = [
        f"{function.name}: {section}"
        for function in public_functions(ast.parse(module.read_text(encoding="utf-8")))
        for section in sections_due(function)
        if f"\n{section}:\n" not in f"{ast.get_docstring(function)}\n"
    ]
    assert not lacking, f"{module}: docstrings lack {', '.join(lacking)}"


@pytest.mark.parametrize(
    ("source", "due"),
    [
        ("def f(a): ...", ["Args"]),
        ("def f() -> int: ...", ["Returns"]),
        ("def f(*, a) -> Iterator[int]: yield 1", ["Args", "Yields"]),
        ("def f() -> None: raise ValueError", ["Raises"]),
        ("def f(self): ...", []),
        ("def f() -> None:\n    def g(): raise ValueError", []),
        ("@property\ndef f(self) -> int: ...", []),
    ],
)
def test_sections_are_due_by_the_signature_and_the_body(source: str, due: list[str]) -> None:
    [function] = ast.parse(source).body
    assert isinstance(function, Function)
    assert list(sections_due(function)) == due


def public_functions(tree: ast.Module) -> Iterator[Function]:
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]
        yield from (each for each in inner if isinstance(each, Function) and not each.name.startswith("_"))


def sections_due(function: Function) -> Iterator[str]:
    """Yield the sections that a function's docstring is to have. A property reads as an attribute does."""
    if any(ast.unparse(decorator) in ATTRIBUTES for decorator in function.decorator_list):
        return
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    if any(each and each.arg not in ("self", "cls") for each in named):
        yield "Args"
    inside = list(own_nodes(function))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in inside):
        yield "Yields"
    elif function.returns and ast.unparse(function.returns) not in ("None", "NoReturn"):
        yield "Returns"
    if any(isinstance(node, ast.Raise) and node.exc for node in inside):
        yield "Raises"


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a function, and not in a function within it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda):
            yield child
            yield from own_nodes(child)
