"""What changes a version, and what does not."""

from __future__ import annotations

import pytest

from bench_code.units import parse

SOURCE = '''import os
LIMIT = 3

@cached
def outer(x, y=2):
    """Say what it does."""
    def inner():
        return x
    return inner() + y

class Shape:
    sides = 4

    def area(self):
        return self.sides
'''


def changed(old: str, new: str) -> list[str]:
    before, after = parse(SOURCE.encode()), parse(SOURCE.replace(old, new).encode())
    names = [name for name in before.bodies if before.bodies[name] != after.bodies.get(name)]
    return names + ["skeleton"] * (before.skeleton != after.skeleton)


@pytest.mark.parametrize(
    ("old", "new", "versions"),
    [
        ("return x\n", "return x + 1\n", ["outer"]),
        ("return self.sides", "return self.sides * 2", ["Shape.area"]),
        ("return x\n", "return (x)  # as it is\n\n", []),
        ("LIMIT = 3", "LIMIT = 4", ["skeleton"]),
        ("@cached", "@kept", ["skeleton"]),
        ("y=2", "y=3", ["skeleton"]),
        ("Say what", "Tell what", ["skeleton"]),
        ("sides = 4", "sides = 5", ["skeleton"]),
        ("    return inner() + y", "    yield inner() + y", ["outer", "skeleton"]),
        ("def area", "async def area", ["skeleton"]),
    ],
)
def test_an_edit_changes_the_version_that_it_stands_in(old: str, new: str, versions: list[str]) -> None:
    assert changed(old, new) == versions


def test_a_line_belongs_to_the_function_that_holds_it() -> None:
    module = parse(SOURCE.encode())
    at = [unit.name if (unit := module.function_at(line)) else "" for line in range(1, 16)]
    assert at == ["", "", "", *["outer"] * 6, "", "", "", "", "Shape.area", "Shape.area"]


def test_a_second_definition_of_a_name_is_a_unit_of_its_own() -> None:
    source = "class A:\n    @property\n    def x(self): return 1\n    @x.setter\n    def x(self, v): pass\n"
    assert list(parse(source.encode()).bodies) == ["A.x", "A.x#2"]


def test_a_file_that_does_not_parse_is_one_skeleton_and_says_why() -> None:
    module = parse(b"def f(:\n")
    assert (module.units, module.broken) == ((), "line 1: invalid syntax")
    assert module.skeleton != parse(b"def g(:\n").skeleton
