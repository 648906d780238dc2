"""Sees whether a test leaves something in memory for the tests after it.

Looked at are the objects that the tree's modules, their classes and shared fixtures hold, with what lies in these: containers,
closures, objects of the tree's classes; and the environment, the folder, the threads. What an installed package holds is not.
"""

from __future__ import annotations

import builtins
import gc
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache, partial
from operator import is_
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

MOST = 300_000
"""The most objects that are looked at."""
CONTAINERS = (dict, list, set, deque, CellType, type(lru_cache(int)))
PASSED_THROUGH = (tuple, frozenset, property, classmethod, staticmethod, partial)
"""Types of objects that hold others. The second cannot change what they hold."""
ATOMS = (int, float, str, bytes, bool, type(None))
OF_PYTHON = frozenset({"__annotations__", "__warningregistry__", "__path__", "tearDown_exceptions"})
"""Names that Python and `unittest` set in a module or a class at any time."""


class Left(NamedTuple):
    """Something that was left in memory.

    file    the file of tests that holds it; "" if all tests may see it
    names   the name under which a module or a class holds it, or the names in it that have changed
    """

    file: str
    names: tuple[frozenset[str], ...]


class HeldObjects:
    """What the modules of a tree hold.

    Args:
        file_of: Returns the file of a loaded module if it lies in the tree; else "".
        is_tests: Returns whether a file holds tests, so that its module is of no concern to other files.
    """

    def __init__(self, file_of: Callable[[ModuleType], str], is_tests: Callable[[str], bool]):
        self._file_of, self._is_tests = file_of, is_tests
        self._holders: list[Any] = []
        self._kept: list[object] = []  # so that no later object has the identity of one that is known
        self._labels: list[tuple[str, str]] = []
        self._flat: list[object] = []
        self._each: list[Any] = []
        self._modules: dict[str, ModuleType] = {}
        self._known: set[int] = {id(vars(builtins))}
        self._seen, self._of_tree = set[str](), set[str]()
        self._around: object = None

    def begin(self) -> None:
        """Note what is there."""
        self._add_modules()
        self._flat, self._around = gc.get_referents(*self._holders), self._surroundings()

    def watch(self, value: object, file: str, name: str) -> None:
        """Look from now on at the value of a shared fixture too."""
        count = len(self._holders)
        self._add([(value, file, name)])
        self._flat += gc.get_referents(*self._holders[count:])

    def left(self) -> list[Left]:
        """Return what has changed since the last call, and note what is there now."""
        around, changes = self._surroundings(), list[Left]()
        if around != self._around:
            changes.append(Left("", (frozenset({"the surroundings"}),)))
        elif not _are_same(gc.get_referents(*self._holders), self._flat):
            changes += self._changed()
        else:
            return []
        self.begin()
        return changes

    def _surroundings(self) -> object:
        variables = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
        modules = [id(sys.modules.get(name)) for name in self._modules]
        return variables, _folder(), [*sys.path], {*threading.enumerate()}, modules

    def _changed(self) -> list[Left]:
        changes, again = list[Left](), list[tuple[Any, str, str]]()
        for place, (holder, before, (file, name)) in enumerate(zip(self._holders, self._each, self._labels, strict=True)):
            now = _content(holder)
            if isinstance(now, dict):
                if len(now) == len(before) and _are_same(now.values(), before.values()):
                    continue
                keys = {key for key in before | now if not _is_same(before.get(key, gc), now.get(key, gc))}
                keys -= OF_PYTHON if not name else set()
                again += [(now.get(key), file, name or str(key)) for key in keys]
                names = (frozenset(map(str, keys)), frozenset({name} - {""} or map(str, keys)))
                changes += [Left(file, names)] if keys else []
            elif not _are_same(now, before):
                orders = sorted(now, key=id), sorted(before, key=id)
                is_moved = len(now) == len(before) and all(map(_is_same, *orders))
                changes += [] if is_moved else [Left(file, (frozenset({name}),))]
                again += [(each, file, name) for each in now]
            self._each[place] = now
        self._add(again)
        return changes

    def _add_modules(self) -> None:
        names = sys.modules.keys() - self._seen
        new = [(name, each) for name in sorted(names) if isinstance(each := sys.modules.get(name), ModuleType)]
        self._seen |= names
        files = {name: file for name, each in new if (file := self._file_of(each))}
        self._known |= {id(vars(each)) for name, each in new}
        self._of_tree |= files.keys()
        for name, each in new:
            if file := files.get(name, ""):
                self._modules[name] = each
                scope = file if self._is_tests(file) else ""
                self._hold(vars(each), scope, "")
                self._add([(value, scope, key) for key, value in [*vars(each).items()] if key != "__builtins__"])

    def _hold(self, holder: object, file: str, name: str) -> None:
        self._holders.append(holder)
        self._each.append(_content(holder))
        self._labels.append((file, name))

    def _add(self, waiting: list[tuple[Any, str, str]]) -> None:
        """Look at these objects, each of a file and under a name, and at what they hold."""
        while waiting and len(self._known) < MOST:
            value, file, name = waiting.pop()
            kind = type(value)
            if kind in ATOMS or id(value) in self._known or isinstance(value, ModuleType):
                continue
            self._known.add(id(value))
            self._kept.append(value)
            inside: dict[str, Any] | None
            if isinstance(value, type):
                if value.__module__ in self._of_tree:
                    inside = next((each for each in gc.get_referents(value) if type(each) is dict and "__module__" in each), {})
                    self._known.add(id(inside))
                    self._hold(inside, file, "")
                    waiting += [(each, file, key) for key, each in inside.items()]
                continue
            if kind is FunctionType:
                if value.__module__ in self._of_tree or value.__closure__:
                    waiting += [(each, file, name) for each in gc.get_referents(value) if type(each) in (dict, tuple)]
                continue
            if isinstance(value, CONTAINERS):
                self._hold(value, file, name)
            elif isinstance(value, PASSED_THROUGH):
                pass
            elif kind.__module__ in self._of_tree:
                inside = _attributes_of(value)
                self._hold(value if inside is None else inside, file, name)
                self._known.add(id(inside))
                waiting += [(each, file, name) for each in inside.values()] if inside else []
            else:
                continue
            waiting += [(each, file, name) for each in gc.get_referents(value)]


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""


def _attributes_of(value: object) -> dict[str, object] | None:
    try:
        changes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return changes if type(changes) is dict else None


def _content(holder: object) -> Any:
    return dict.copy(holder) if isinstance(holder, dict) else gc.get_referents(holder)


def _are_same(some: Collection[object], others: Collection[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _is_same(this: object, other: object) -> bool:
    return this is other or (type(this) is type(other) and type(this) in ATOMS and this == other)


def unexplained(left: Iterable[Left], filled: set[str]) -> list[Left]:
    """Return what was left, without what functions of these tests' own accord fill.

    Args:
        left: What was left.
        filled: The names of what they fill.
    """
    return [each for each in left if not any(names and names <= filled for names in each.names)]
