"""Sees whether a test leaves something in memory for the tests after it.

Looked at are the objects that the tree's modules, their classes and shared fixtures hold, with what lies in these: containers,
closures, objects of the tree's classes and of the standard library's; the attributes of all other modules; and what a process
has but one of: the variables of the environment, the folder, the threads, the context.
"""

from __future__ import annotations

import builtins
import contextvars
import decimal
import gc
import locale
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from operator import is_
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

MOST = 300_000
"""The most objects that are looked at."""
CONTAINERS = (dict, list, set, deque)
OF_PYTHONS_OWN = 1 << 9
"""The flag of a type that is no static one of C. If its objects have attributes, they hide nothing else."""
PICKLED = ("__reduce__", "__reduce_ex__", "__getstate__")
IDENTITY: tuple[object, ...] = (None, object.__hash__)
"""How an object is hashed that can change."""
ATOMS = (int, float, str, bytes, bool, type(None))
OF_PYTHON = frozenset({"__annotations__", "__warningregistry__", "__path__", "tearDown_exceptions", "_cache"})
"""Names that Python, `unittest` and `logging` set in a module, a class or a logger at any time."""
TESTERS = frozenset({"_pytest", "pytest", "pluggy", "hypothesis", "bench", "bench_code", "sys", "warnings", "__main__"})
"""Packages whose modules' attributes change while any test runs."""


class ProcessState(NamedTuple):
    """What a process has but one of.

    variables   of the environment: name -> value
    place       the folder (None if it is gone), the path of imports, the threads, and the tree's modules by their identity
    limits      the context of decimal numbers, the locale, and the depth of recursion
    levels      of loggers that have one: identity -> level
    context     variables of the context: identity -> the value's identity
    """

    variables: dict[str, str]
    place: tuple[Path | None, list[str], set[threading.Thread], list[int]]
    limits: tuple[str, str, int]
    levels: dict[int, int]
    context: dict[int, int]


class HeldObjects:
    """What the modules of a tree hold.

    Args:
        file_of: Returns the file in which a module's attributes say that it lies, if that is in the tree; else "".
        is_tests: Returns whether a file holds tests, so that its module is of no concern to other files.
    """

    def __init__(self, file_of: Callable[[dict[str, object]], str], is_tests: Callable[[str], bool]):
        self._file_of, self._is_tests = file_of, is_tests
        self._held: list[Any] = []
        self._labels: list[tuple[str, str]] = []
        self._inside: list[list[object]] = []
        self._contents: list[dict[object, object]] = []
        self._opaque: list[int] = []
        self._flat: list[object] = []
        self._kept: list[object] = []  # so that no later object has the identity of one that is known
        self._known: set[int] = {id(vars(builtins))}
        self._modules = dict[str, object]()
        self._seen = set[str]()
        self._around: ProcessState | None = None
        self._others = dict[str, dict[str, object]]()

    def begin(self) -> None:
        """Note what is there."""
        names = sorted(sys.modules.keys() - self._seen)
        self._seen |= {*names}
        attributes = {name: held for name in names if (held := attributes_of(sys.modules.get(name))) is not None}
        new = {name: (held, file) for name, held in attributes.items() if (file := self._file_of(held))}
        self._modules |= {name: sys.modules.get(name) for name in new}
        self._known |= {id(held) for held, _ in new.values()}
        for held, file in new.values():
            scope = file if self._is_tests(file) else ""
            self._hold(held, scope, "")
            self._add([(value, scope, key) for key, value in [*held.items()] if key != "__builtins__"])
        self._flat, self._around = self._referents(), self._surroundings()
        self._others = self._others or self._other_modules()

    def watch(self, value: object, file: str, name: str) -> None:
        """Look from now on at the value of a shared fixture too."""
        count = len(self._held)
        self._add([(value, file, name)])
        self._flat += self._referents(count)

    def left(self, filled: Collection[str]) -> set[str]:
        """Return what holds something else than at the last call, and note what is there now.

        Args:
            filled: The names under which something may have come that counts for nobody.

        Returns:
            Files of tests that hold it in their own module; "" if all tests may see it.
        """
        around, flat = self._surroundings(), self._referents()
        files = {""} if around != self._around else set[str]()
        if not _are_same(flat, self._flat) or any(map(self._has_changed, self._opaque)):
            files |= self._changed({*filled})
        elif not files:
            return files
        self.begin()
        return files

    def is_left_elsewhere(self) -> bool:
        """Return whether an attribute of another module differs from the last call, but for modules and what was None."""
        before, self._others = self._others, self._other_modules()
        return any(
            not (value is None or isinstance(now, ModuleType) or _is_same(value, now))
            for name in before.keys() & self._others.keys()
            for key in before[name].keys() | self._others[name].keys()
            for value, now in ((before[name].get(key, gc), self._others[name].get(key, gc)),)
        )

    def _other_modules(self) -> dict[str, dict[str, object]]:
        """Return their attributes: of plain modules alone, for a lazy one runs when it is asked for its own."""
        return {
            name: dict(vars(each))
            for name, each in [*sys.modules.items()]
            if name not in self._modules and name.partition(".")[0] not in TESTERS and type(each) is ModuleType
        }

    def _surroundings(self) -> ProcessState:
        variables = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
        where: Path | None = None
        with suppress(FileNotFoundError):
            where = Path.cwd()
        loggers = [logging.root, *logging.root.manager.loggerDict.values()]
        return ProcessState(
            variables,
            (where, [*sys.path], {*threading.enumerate()}, [id(sys.modules.get(name)) for name in self._modules]),
            (repr(decimal.getcontext()), locale.setlocale(locale.LC_ALL), sys.getrecursionlimit()),
            {id(each): each.level for each in loggers if isinstance(each, logging.Logger) and each.level},
            {id(variable): id(value) for variable, value in contextvars.copy_context().items()},
        )

    def _referents(self, start: int = 0) -> list[object]:
        return gc.get_referents(*self._held[start:])

    def _has_changed(self, place: int) -> bool:
        return _content(self._held[place])[""] != self._contents[place][""]

    def _changed(self, filled: set[str]) -> set[str]:
        files, again = set[str](), list[tuple[Any, str, str]]()
        for place, holder in enumerate(self._held):
            inside = gc.get_referents(holder)
            if _are_same(inside, self._inside[place]) and place not in self._opaque:
                continue
            (file, name), before = self._labels[place], self._contents[place]
            self._inside[place], now = inside, _content(holder)
            self._contents[place] = now
            keys = {key for key in before.keys() | now.keys() if not _is_same(before.get(key, gc), now.get(key, gc))}
            again += [(now.get(key), file, name or str(key)) for key in keys]
            if keys - OF_PYTHON and name not in filled and not keys <= filled:
                files.add(file)
        self._add(again)
        return files

    def _hold(self, holder: object, file: str, name: str) -> None:
        self._opaque += [len(self._held)] if _state(holder) is not None else []
        self._known.add(id(holder))
        self._held.append(holder)
        self._labels.append((file, name))
        self._inside.append(gc.get_referents(holder))
        self._contents.append(_content(holder))

    def _add(self, waiting: list[tuple[Any, str, str]]) -> None:
        """Look at these objects, each of a file and under a name, and at what they hold."""
        while waiting and len(self._known) < MOST:
            value, file, name = waiting.pop()
            kind = type(value)
            if kind in ATOMS or id(value) in self._known or isinstance(value, ModuleType):
                continue
            self._known.add(id(value))
            self._kept.append(value)
            attributes, inside = attributes_of(value), gc.get_referents(value)
            if isinstance(value, type):
                if value.__module__ in self._modules:
                    attributes = next((each for each in inside if type(each) is dict and "__module__" in each), {})
                    self._hold(attributes, file, "")
                    waiting += [(each, file, key) for key, each in attributes.items()]
            elif kind is FunctionType:
                is_known = value.__module__ in self._modules or value.__closure__
                waiting += [(each, file, name) for each in inside if is_known and type(each) in (dict, tuple)]
            elif kind.__module__ in self._modules or _is_of_standard(kind):
                if attributes is None or isinstance(value, CONTAINERS) or _state(value) is not None:
                    self._hold(value, file, name)
                if attributes is not None:
                    self._hold(attributes, file, name)
                waiting += [(each, file, name) for each in (*inside, *(attributes or {}).values())]


def attributes_of(value: object) -> dict[str, object] | None:
    """Return what an object holds as attributes; None if it holds none. None of its code runs, so a lazy module stays lazy."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return attributes if type(attributes) is dict else None


def _content(holder: Any) -> dict[object, object]:
    """Return what an object holds: a table's values by their keys, other objects by their identity, and its hidden state."""
    if isinstance(holder, dict):
        return dict.copy(holder)
    inside = gc.get_referents(holder)
    of = {(type(each), each) if type(each) in ATOMS else id(each): each for each in inside}
    return of | {"": f"{len(inside)} {_state(holder)}"}


def _is_of_standard(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] in sys.stdlib_module_names


def _state(value: Any) -> list[object] | None:
    """Return the numbers and texts that an object of the standard library hides, as they are pickled; None if it hides none."""
    kind, hidden = type(value), list[object]()
    hides = any(getattr(kind, name, None) is not getattr(object, name, None) for name in PICKLED)
    hides = hides and not (kind.__flags__ & OF_PYTHONS_OWN and hasattr(value, "__dict__"))
    if not hides or not _is_of_standard(kind) or isinstance(value, CONTAINERS) or kind.__hash__ not in IDENTITY:
        return None
    try:
        waiting = [*value.__reduce_ex__(2)[1:]]
    except Exception:  # what cannot be pickled says so in many ways
        return None
    while waiting:
        each = waiting.pop()
        if type(each) in (tuple, list):
            waiting += each
        elif type(each) in ATOMS and each is not None:
            hidden.append(each)
    return hidden


def _are_same(some: list[object], others: list[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _is_same(this: object, other: object) -> bool:
    return this is other or (type(this) is type(other) and type(this) in ATOMS and this == other)
