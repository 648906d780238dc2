"""What a module's statements bind and mention, and which of them can do nothing but bind names."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from bench_code.mentions import ANY, BARE, PLAIN, STAR, VALUE, body_mentions, mentions
from bench_code.standard import STANDARD, WITHIN
from bench_code.surface import surface_of


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
        "import os.path",
        "from typing import Any",
        "class A(dict):\n    __slots__ = ('x',)",
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
        "class A(int):\n    __slots__ = ('x',)",
    ],
)
def test_what_may_fail_or_do_more_or_is_looked_for_by_its_name_is_no_plain_definition(source: str) -> None:
    assert kinds(source) == ["test" if "test" in source else "other"]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import re\nWORD = re.compile('[a-z]+', re.I | re.X)", "binding"),
        ("import re\nWORD = re.compile('[z-a]')", "other"),
        ("import re\nWORD = re.compile(WORDS)", "other"),
        ("from threading import local\nCURRENT = local()", "binding"),
        ("from collections import defaultdict\nFOUND = defaultdict(list)", "binding"),
        ("from collections import defaultdict\nFOUND = defaultdict(made)", "other"),
        ("from enum import Enum\nclass A(Enum):\n    X = 1\n    Y = 1\n    def f(self): pass", "binding"),
        ("from enum import Enum\nclass A(Enum):\n    X = 1\n    X = 2", "other"),
        ("from enum import Enum\nclass A(Enum):\n    X = 1\n    def __init__(self, x): pass", "other"),
        ("from enum import Enum\nclass A(Enum):\n    _sunder_ = 1", "other"),
        ("from functools import total_ordering\n@total_ordering\nclass A:\n    def __lt__(self, other): pass", "binding"),
        ("from functools import total_ordering\n@total_ordering\nclass A: pass", "other"),
        ("import sys\nif sys.version_info >= (3, 2):\n    a = 1\nelse:\n    b = count()", "binding"),
        ("import sys\nif sys.version_info < (3, 2):\n    a = 1\nelse:\n    b = count()", "other"),
        ("import sys\nif sys.platform > 3:\n    a = 1", "other"),
        ("from enum import Enum\nclass A(Enum):\n    X = 1\nB = A.X", "binding"),
    ],
)
def test_of_what_the_standard_library_makes_it_is_known_whether_it_can_fail(source: str, kind: str) -> None:
    assert kinds(source)[-1] == kind


def test_an_enumeration_with_members_is_the_base_of_no_class() -> None:
    assert kinds("from enum import Enum\nclass A(Enum):\n    X = 1\nclass B(A): pass") == ["binding", "binding", "other"]


@pytest.mark.parametrize(
    "source", ["from typing import none", "from typing import *", "import json.tool", "import this", "import a"]
)
def test_an_import_that_may_fail_or_run_code_is_no_binding(source: str) -> None:
    assert kinds(source) == ["import"]


def test_what_is_known_of_the_standard_library_is_loaded_before_any_test_is_imported() -> None:
    code = "import sys, pytest, bench_code.pytest_recording; print(*sys.modules)"
    loaded = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) >= STANDARD | WITHIN


def test_a_builtin_name_that_the_module_binds_is_none() -> None:
    assert kinds("def f(x=len): pass") == ["binding"]
    assert kinds("def f(x=len): pass\nfor len in (): pass") == ["other", "other"]
    assert kinds("from other import *\ndef f(x=len): pass") == ["import", "other"]


def test_what_type_checkers_alone_read_is_no_statement() -> None:
    assert kinds("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\nelse:\n    b = 1") == [
        "binding",
        "binding",
    ]
    assert kinds("if TYPE_CHECKING:\n    import a") == ["other"]


def test_a_default_may_be_a_member_of_a_plain_class_that_stands_before() -> None:
    assert kinds("class A:\n    def f(self): pass\nclass B(A):\n    def g(self, of=A.f): pass") == ["binding", "binding"]
    assert kinds("class A:\n    x: int\nclass B(A):\n    def g(self, of=A.x): pass") == ["binding", "other"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a.b(c.d)", {PLAIN + "a", "b", PLAIN + "c", "d", BARE + "b", BARE + "d"}),
        ("getattr(a.b, 'c')", {PLAIN + "getattr", BARE + "getattr", PLAIN + "a", "b", BARE + "b", "c", BARE + "c"}),
        ("from sys import modules as m", {"sys", "modules", BARE + "modules", ANY}),
        ("patch('one.two')", {PLAIN + "patch", "one", "two", BARE + "patch", BARE + "two"}),
        ("from a.b import c as d", {"a", "b", "c", BARE + "c"}),
        ("from a import *", {"a", STAR, BARE + "*"}),
        ("'''A docstring.'''", set()),
        ("x.__dict__", {PLAIN + "x", "__dict__", BARE + "x", BARE + "__dict__"}),
    ],
)
def test_code_mentions(source: str, names: set[str]) -> None:
    assert {word for word in mentions([compile(source, "", "exec", 1024)]) if not word.startswith(VALUE)} == names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("f()", set()),
        ("a.f(1)", {"a"}),
        ("f(g)", {"g"}),
        ("a.f.__doc__", {"__doc__", "f", "a"}),
        ("x = f", {"f"}),
        ("from m import f", set()),
        ("from m import f as g", {"f"}),
        ("h('m.f')", {"m", "f"}),
        ("class A(B): pass", {"B"}),
        ("@d\ndef f(): pass", {"d"}),
    ],
)
def test_code_hands_on_what_it_mentions_without_a_call(source: str, names: set[str]) -> None:
    words = mentions([compile(source, "", "exec", 1024)])
    assert {word.removeprefix(VALUE) for word in words if word.startswith(VALUE)} == names


@pytest.mark.parametrize("source", ["globals()", "sys.modules[x]", "eval(x)", "import_module(x)", "f.__globals__", "vars()"])
def test_code_that_reaches_names_without_a_text_of_them_mentions_any(source: str) -> None:
    assert ANY in set(mentions([compile(source, "", "exec", 1024)]))


@pytest.mark.parametrize(
    ("body", "mentioned"),
    [
        ("return a", False),
        ("return [a for _ in range(2)]", False),
        ("a = 1\n    return lambda: a", False),
        ("return b.a", True),
        ("import a\n    return a", True),
        ("class B:\n        a = a", True),
        ("def f():\n        global a\n        return a", True),
        ("return 'a'", True),
    ],
)
def test_a_local_variable_mentions_no_name_of_a_module(body: str, mentioned: bool) -> None:
    function = ast.parse(f"def f(a, b):\n    {body}").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert bool({"a", PLAIN + "a", BARE + "a"} & body_mentions(function)) == mentioned
