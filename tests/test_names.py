"""Names in the code say what they hold: no word that stands for any noun, and no type that shares its name with another. What a
docstring says begins with a noun or a verb."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
CODE = [
    path
    for path in sorted([*ROOT.glob("bench/**/*.py"), *ROOT.glob("code/src/**/*.py"), *ROOT.glob("studies/**/*.py")])
    if "templates" not in path.parts  # a template is a user's own pack
]
IN_IDS = ("tests/support/packs", "tests/support/worlds")
"""Packs whose code stands in the ids of trials; a name of theirs stays."""
TESTS = [
    path
    for path in sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("code/bench_code_tests/**/*.py")])
    if not path.relative_to(ROOT).as_posix().startswith(IN_IDS)
]
EMPTY = frozenset({"one", "own", "found", "said"})
LEANING = frozenset({"Of", "Those", "That", "It", "It,"})
PARTICIPLES = frozenset(
    {
        "begun",
        "bound",
        "bought",
        "brought",
        "built",
        "caught",
        "chosen",
        "done",
        "drawn",
        "forgotten",
        "frozen",
        "given",
        "held",
    }
    | {"hidden", "kept", "known", "laid", "lent", "lost", "made", "meant", "met", "overwritten", "paid", "rebuilt", "remade"}
    | {"resent", "retold", "rewritten", "seen", "sent", "shown", "spent", "struck", "taken", "taught", "thrown", "told", "torn"}
    | {"undone", "written"}
)
NOUNS = frozenset({"bed", "embed", "exceed", "feed", "need", "proceed", "seed", "speed", "succeed"})
"""Nouns and verbs that end as a participle does."""
FREE_OF_PARTICIPLES = ("cli", "common", "elsewhere", "probe", "read", "record", "rerun", "run", "wire", "worlds")
"""The rooms in which no private function is named by a participle alone."""
MOST_PARTICIPLES = 57
"""The most functions of `bench` that are. The number may only fall: name a new function by what it does or returns."""
RECORDED = {("bench/record/world_events.py", "said")}
"""Fields of records, which keep their names."""


def test_no_variable_and_no_function_has_a_name_that_says_nothing() -> None:
    names = {(place(path), name): line for path in (*CODE, *TESTS) for name, line in read(path).bound}
    empty = {key: line for key, line in names.items() if key[1].strip("_") in EMPTY and key not in RECORDED}
    assert len(names) > 5000
    assert not empty, "\n".join(f"{path}:{line}: name '{name}' by what it holds" for (path, name), line in empty.items())


def test_no_two_types_share_a_name() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for path in CODE:
        for name in read(path).types:
            homes[name].add(place(path))
    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert len(homes) > 500
    assert not shared, "\n".join(f"{name}: {', '.join(sorted(paths))}; rename all but one" for name, paths in shared.items())


def test_no_docstring_begins_with_a_word_that_leans_on_another() -> None:
    leaning = [f"{place(path)}:{line}: {text}" for path in CODE for line, text in read(path).leaning]
    assert not leaning, "\n".join((*leaning, "begin with what it is, or with what it does"))


def test_a_function_is_named_by_what_it_does_or_returns_and_by_no_participle_alone() -> None:
    named = [(place(path), name) for path in CODE if place(path).startswith("bench/") for name in read(path).participles]
    rooms = tuple(f"bench/{room}/" for room in FREE_OF_PARTICIPLES)
    assert not [f"{path}: {name}" for path, name in named if name.startswith("_") and path.startswith(rooms)]
    assert len(named) <= MOST_PARTICIPLES


@pytest.mark.parametrize(
    ("name", "is_participle"),
    [("_told", True), ("parsed", True), ("_is_told", False), ("parse", False), ("_speed", False), ("told_lines", False)],
)
def test_a_participle_is_told_from_a_verb_and_a_noun(name: str, is_participle: bool) -> None:
    assert is_bare_participle(name) is is_participle


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "found: int = 1",
        "def found(): ...",
        "def run(found): ...",
        "def run(*, found=1): ...",
        "[1 for found in ()]",
        "lambda found: 1",
        "if found := 1: ...",
        "for _, found in (): ...",
        "import json as found",
        "with open('x') as found: ...",
        "class Reader:\n    found: int",
        "def run(self):\n    self.found = 1",
        "try: ...\nexcept OSError as found: ...",
        "match 1:\n    case found: ...",
        "match 1:\n    case [*found]: ...",
        "match 1:\n    case {**found}: ...",
    ],
)
def test_a_name_is_seen_however_it_is_bound(source: str) -> None:
    assert "found" in {name for name, _ in bound_in(ast.walk(ast.parse(source)))}


def test_a_class_and_an_alias_are_types_and_a_variable_or_a_type_variable_is_none() -> None:
    source = (
        "class Row: ...\nKey = tuple[str, int]\nItem = TypeVar('Item')\nmost = 3\nMOST = 3\nclass Outer:\n    class Inner: ..."
    )
    assert set(types_in(ast.parse(source))) == {"Row", "Key", "Outer"}


class Names(NamedTuple):
    """What a file binds, with lines; its types; the first lines of docstrings that lean on another word, with lines; and its
    functions whose name is a participle alone."""

    bound: list[tuple[str, int]]
    types: list[str]
    leaning: list[tuple[int, str]]
    participles: list[str]


@cache
def read(path: Path) -> Names:
    """Return the names of a file, which is parsed once for all tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    texts = (
        (node.lineno, text)
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (text := ast.get_docstring(node))
    )
    leaning = [(line, text.splitlines()[0]) for line, text in texts if text.split()[0] in LEANING]
    functions = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return Names(list(bound_in(nodes)), list(types_in(tree)), leaning, list(filter(is_bare_participle, functions)))


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def bound_in(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """Yield each name that the code binds, with its line."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name, node.lineno


def types_in(tree: ast.Module) -> Iterator[str]:
    """Yield the classes and aliases of a module; a type variable is none, and stands for any type."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_camel(name) and not makes_variable(value):
                yield name


def is_bare_participle(name: str) -> bool:
    """Return whether a function's name is a participle and nothing else, as `_told` is."""
    word = name.strip("_")
    return word in PARTICIPLES or (word.endswith("ed") and len(word) > 3 and "_" not in word and word not in NOUNS)


def is_camel(name: str) -> bool:
    bare = name.lstrip("_")
    return bare[:1].isupper() and any(map(str.islower, bare))


def makes_variable(value: ast.expr) -> bool:
    names: Iterable[str] = ("TypeVar", "TypeVarTuple", "ParamSpec")
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in names
