"""What a module's statements bind and mention, and which of them can do nothing but bind names."""

from __future__ import annotations

import pytest

from bench.codebase.mentions import ANY, BARE, STAR, mentions
from bench.codebase.surface import surface_of


def kinds(source: str) -> list[str]:
    surface = surface_of(source.encode())
    return [statement.kind for statement in surface.statements] if surface is not None else []


@pytest.mark.parametrize(
    "source",
    [
        "LIMIT = 3",
        "LIMIT = -3 * 2.5",
        "PAIRS = {'a': [1, ()], (1, 2): None}",
        "def f(x, y=2, *z, k=None): raise ValueError",
        "def f(x: int) -> None: pass",
        "class A:\n    x = 1\n    def f(self): pass\n    g = f",
        "class A:\n    @property\n    def p(self): pass\n    @p.setter\n    def p(self, v): pass",
        "class A(ValueError):\n    'a text'",
        "class A:\n    __slots__ = ('x',)",
        "if __name__ == '__main__':\n    run()",
        "F = lambda x, y=1: g(x)",
        "NOTHING = object()",
    ],
)
def test_a_plain_definition_binds_and_does_no_more(source: str) -> None:
    assert kinds(source) == ["binding"]


@pytest.mark.parametrize(
    "source",
    [
        "LIMIT = count()",
        "LIMIT = unknown",
        "LIMIT = 1 / 0",
        "SET = {[1]}",
        "def f(x=unknown): pass",
        "def f(x: unknown): pass",
        "@kept\ndef f(): pass",
        "class A(Unknown): pass",
        "class A(metaclass=type): pass",
        "class A:\n    x = count()",
        "class A:\n    def __init_subclass__(cls): pass",
        "class A:\n    __slots__ = ('x',)\n    x = 1",
        "class A:\n    x = 1\n    class B:\n        def f(self, y=x): pass",
        "def __getattr__(name): pass",
        "def test_it(): pass",
        "pytestmark = None",
        "x.y = 1",
        "for x in (): pass",
        "del x",
        "print()",
    ],
)
def test_what_may_fail_or_do_more_or_is_looked_for_by_its_name_is_no_plain_definition(source: str) -> None:
    assert kinds(source) == ["other"]


def test_a_builtin_name_that_the_module_binds_is_none() -> None:
    assert kinds("def f(x=len): pass") == ["binding"]
    assert kinds("def f(x=len): pass\nfor len in (): pass") == ["other", "other"]
    assert kinds("from other import *\ndef f(x=len): pass") == ["import", "other"]


def test_what_type_checkers_alone_read_is_no_statement() -> None:
    assert kinds("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\nelse:\n    b = 1") == ["import", "binding"]
    assert kinds("if TYPE_CHECKING:\n    import a") == ["other"]


def test_a_default_may_be_a_member_of_a_plain_class_that_stands_before() -> None:
    assert kinds("class A:\n    def f(self): pass\nclass B(A):\n    def g(self, of=A.f): pass") == ["binding", "binding"]
    assert kinds("class A:\n    x: int\nclass B(A):\n    def g(self, of=A.x): pass") == ["binding", "other"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a.b(c.d)", {"a", "b", "c", "d", BARE + "b", BARE + "d"}),
        ("patch('one.two')", {"patch", "one", "two", BARE + "patch", BARE + "two"}),
        ("from a.b import c as d", {"a", "b", "c", "d", BARE + "c"}),
        ("from a import *", {"a", STAR, BARE + "*"}),
        ("'''A docstring.'''", set()),
        ("x.__dict__", {"x", "__dict__", BARE + "x", BARE + "__dict__"}),
    ],
)
def test_code_mentions(source: str, names: set[str]) -> None:
    assert set(mentions([compile(source, "", "exec", 1024)])) == names


@pytest.mark.parametrize("source", ["globals()", "sys.modules[x]", "eval(x)", "import_module(x)", "f.__globals__", "vars()"])
def test_code_that_reaches_names_without_a_text_of_them_mentions_any(source: str) -> None:
    assert ANY in set(mentions([compile(source, "", "exec", 1024)]))
