"""The text of a module's syntax follows what the module does, and nothing else."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from bench.run.experiment.code import PACKAGE
from bench.run.experiment.syntax import syntax_of
from bench.task import Output
from bench.worlds.run.driver import common_tools

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.stat().st_size > 500 and "codebase" not in path.parts)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def text_of(source: str) -> str:
    return syntax_of(ast.parse(source))


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            first = node.body[0]
            assert isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            yield first.value


@settings(deadline=None, max_examples=60)
@given(path=st.sampled_from(MODULES), data=st.data())
def test_comments_blank_lines_and_words_of_docstrings_change_nothing(path: Path, data: st.DataObject) -> None:
    source = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(source), source.split("\n")
    words = {constant.lineno: constant for constant in docstrings(tree)}
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "decorator_list")]
    begins = sorted({node.lineno for node in statements if not lines[node.lineno - 1][: node.col_offset].strip()})
    for line in sorted(data.draw(st.sets(st.sampled_from(begins), min_size=1, max_size=5)), reverse=True):
        if line in words:
            lines[line - 1] = lines[line - 1].replace('"""', '"""Another word. ', 1)
        lines.insert(line - 1, data.draw(st.sampled_from(["", "# a remark", "\n\n        # a remark that is set in"])))
    assert text_of("\n".join(lines)) == syntax_of(tree)


@pytest.mark.parametrize("path", MODULES[::25], ids=str)
def test_a_module_printed_in_another_layout_without_its_docstrings_has_the_same_text(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    text = syntax_of(tree)
    for constant in list(docstrings(tree)):
        constant.value = "other words"
    printed = ast.unparse(tree)
    assert printed != path.read_text(encoding="utf-8") and text_of(printed) == text


CHANGES = ("constant", "operator", "default", "decorator", "name")


def changed(tree: ast.Module, change: str, data: st.DataObject) -> bool:
    """Change one thing of a kind in a tree. Return whether there was such a thing."""
    written = {id(constant) for node in ast.walk(tree) if isinstance(node, ast.Expr) for constant in [node.value]}
    kinds = {
        "constant": lambda node: isinstance(node, ast.Constant) and id(node) not in written and type(node.value) in (str, int),
        "operator": lambda node: isinstance(node, ast.BinOp | ast.BoolOp),
        "default": lambda node: isinstance(node, ast.arguments),
        "decorator": lambda node: isinstance(node, ast.FunctionDef | ast.ClassDef),
        "name": lambda node: isinstance(node, ast.Name),
    }
    nodes = [node for node in ast.walk(tree) if kinds[change](node)]
    if not nodes:
        return False
    node: Any = data.draw(st.sampled_from(nodes))
    if change == "constant":
        node.value += "x" if isinstance(node.value, str) else 1
    elif change == "operator":
        other = (ast.Pow, ast.FloorDiv) if isinstance(node, ast.BinOp) else (ast.And, ast.Or)
        node.op = other[isinstance(node.op, other[0])]()
    elif change == "default":
        node.kwonlyargs.append(ast.arg("added"))
        node.kw_defaults.append(ast.Constant(data.draw(st.integers())))
    elif change == "decorator":
        node.decorator_list.append(ast.Name("added", ast.Load()))
    else:
        node.id += "_"
    return True


@settings(deadline=None, max_examples=60)
@given(path=st.sampled_from(MODULES), change=st.sampled_from(CHANGES), data=st.data())
def test_a_changed_constant_operator_default_decorator_or_name_changes_the_text(
    path: Path, change: str, data: st.DataObject
) -> None:
    tree = ast.parse(path.read_bytes())
    before = syntax_of(tree)
    assert changed(tree, change, data) == (syntax_of(tree) != before)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("f(1)", "f(1.0)"),
        ("f('a')", "f(b'a')"),
        ("f(True)", "f(1)"),
        ("f('')", "f()"),
        ("f(None)", "f()"),
        ("{**a}", "{None: a}"),
        ("f'{a}b'", "f'{a}'"),
        ("f'{a:{b}}'", "f'{a:{b}x}'"),
        ("def f(*, a, b=1): g()", "def f(*, a=1, b): g()"),
        ("if a: f()", "if a: pass\nelse: f()"),
        ("async def f(): g()", "def f(): g()"),
        ("import a.b", "from a import b"),
        ("from . import a", "from .. import a"),
        ("a = 1", "a: int = 1"),
    ],
)
def test_two_modules_that_do_different_things_have_different_texts(first: str, second: str) -> None:
    assert text_of(first) != text_of(second)


def test_the_text_is_the_same_on_each_version_of_python() -> None:
    source = 'class Größe(A):\n    """Words."""\n    b: int = 1\n    def c(self, d="ä", *, e): return f"{d:{e}}" \'f\'\n'
    named = "name='Gr\\xf6\\xdfe', bases=[Name(id='A')]"
    joined = "JoinedStr([FormattedValue(value=Name(id='d'), conversion=-1, format_spec=JoinedStr([FormattedValue("
    joined += "value=Name(id='e'), conversion=-1)])), Constant(value='f')])"
    assigned = "AnnAssign(target=Name(id='b'), annotation=Name(id='int'), value=Constant(value=1), simple=1)"
    arguments = "arguments(args=[arg(arg='self'), arg(arg='d')], kwonlyargs=[arg(arg='e')], kw_defaults=[None],"
    arguments += " defaults=[Constant(value='\\xe4')])"
    method = f"FunctionDef(name='c', args={arguments}, body=[Return(value={joined})])"
    assert text_of(source) == f"Module(body=[ClassDef({named}, body=[{assigned}, {method}])])"


def sent_to_models() -> list[type[BaseModel]]:
    """The classes of ours whose JSON schemas are in requests."""
    for room in ("run", "worlds"):
        for module in pkgutil.walk_packages([str(PACKAGE / room)], f"bench.{room}."):
            if not module.name.startswith("bench.run.frameworks.") and "read" not in module.name:
                source = PACKAGE.parent / f"{module.name.replace('.', '/')}.py"
                if source.exists() and "(Output)" in source.read_text(encoding="utf-8"):
                    importlib.import_module(module.name)
    queue: list[type[BaseModel]] = [Output, common_tools._Arguments]
    kinds = list[type[BaseModel]]()
    while queue:
        kinds.append(kind := queue.pop())
        queue += [each for each in kind.__subclasses__() if each.__module__.startswith("bench.")]
    return kinds


def test_no_docstring_of_ours_is_in_a_request() -> None:
    kinds = sent_to_models()
    assert len(kinds) > 8
    documented = [kind.__qualname__ for kind in kinds if kind is not Output and kind.__doc__]
    assert documented == [], "a model is sent its docstring; write `description` in its `model_config`, or a comment"
