"""Sees whether a test leaves something in memory for the tests after it.

Looked at are the objects that the tree's modules, their classes and shared fixtures hold, with what lies in these: containers,
closures, objects of the tree's classes and of the standard library's; the attributes of all other modules; and what a process
has but one of: the variables of the environment, the folder, the threads, the context.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import abc
import builtins
import contextvars
import decimal
import gc
import locale
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from operator import is_
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from bench_code.contents import ATOMS, CONTAINERS, PICKLED, attributes_of, contents_of, digest_of, is_of_standard

MAX_OBJECTS = 300_000
"""The most objects that are looked at."""
MAX_LEFT = 1_000
"""The most objects that are looked at of what one test left."""
TOGETHER = 100
"""How many objects are asked at once whether they hold something else."""
OF_PYTHONS_OWN = 1 << 9
"""The flag of a type that is no static one of C. If its objects have attributes, they hide nothing else."""
IDENTITY: tuple[object, ...] = (None, object.__hash__)
"""How an object is hashed that can change."""
OF_TOOLS = frozenset({"__annotations__", "__warningregistry__", "__path__", "__slotnames__", "tearDown_exceptions", "_cache"})
OF_HYPOTHESIS = "_hypothesis_"
"""Names, and how names begin, that Python, `unittest`, `logging`, `copyreg` and hypothesis set anywhere at any time."""
ISINSTANCE = "_abc_impl"
"""The attribute of an abstract class in which Python keeps answers to `isinstance`. What is registered is asked for instead."""
UNTOLD = (None for _ in ())
"""Nobody can tell what a generator holds."""
TESTERS = frozenset({"_pytest", "pytest", "pluggy", "hypothesis", "bench", "bench_code", "sys", "warnings", "__main__"})
"""Packages whose modules' attributes change while any test runs."""


class ProcessState(NamedTuple):
    """What a process has but one of.

    told     the variables of the environment, the folder (None if it is gone), the path of imports, the context of decimal
             numbers, the locale, the depth of recursion, the levels of loggers that have one, and the classes that were
             registered with abstract classes of the tree
    threads  those that run
    modules  the tree's modules by their identity
    context  variables of the context: identity -> the value's identity
    """

    told: tuple[object, ...]
    threads: set[threading.Thread]
    modules: list[int]
    context: dict[int, int]


class HeldAt(NamedTuple):
    """Where an object is held.

    file   the file of tests whose own module holds it; "" if all tests may see it
    name   the name of the module's or class's attribute; "" for what holds the attributes
    path   the module and the attribute
    """

    file: str
    name: str
    path: str


class HeldObjects:
    """What the modules of a tree hold.

    Args:
        file_of: Returns the file in which a module's attributes say that it lies, if that is in the tree; else "".
        is_tests: Returns whether a file holds tests, so that its module is of no concern to other files.
    """

    def __init__(self, file_of: Callable[[dict[str, object]], str], is_tests: Callable[[str], bool]):
        self._file_of, self._is_tests = file_of, is_tests
        self._held: list[Any] = []
        self._places: list[HeldAt] = []
        self._inside: list[list[object]] = []
        self._contents: list[dict[object, object]] = []
        self._opaque = set[int]()
        self._flat: dict[int, list[object]] = {}
        self._kept: list[object] = []  # so that no later object has the identity of one that is known
        self._known: dict[int, str] = {id(vars(builtins)): "builtins"}
        self._counts = Counter[str]()
        self._modules = dict[str, object]()
        self._seen = set[str]()
        self._abstract = list[type]()
        self._registered: tuple[object, list[list[str]]] = (None, [])
        self._around: ProcessState | None = None
        self._others = dict[str, dict[str, object]]()
        self._unseen = set[str]()

    def begin(self) -> None:
        """Note what is there."""
        names = sorted(sys.modules.keys() - self._seen)
        self._seen |= {*names}
        attributes = {name: held for name in names if (held := attributes_of(sys.modules.get(name))) is not None}
        new = {name: (held, file) for name, held in attributes.items() if (file := self._file_of(held))}
        self._modules |= {name: sys.modules.get(name) for name in new}
        self._known |= {id(held): name for name, (held, _) in new.items()}
        for name, (held, file) in new.items():
            place = HeldAt(file if self._is_tests(file) else "", "", name)
            self._hold(held, place)
            self._add([(value, _within(place, key)) for key, value in [*held.items()] if key != "__builtins__"])
        self._around = self._surroundings()
        self._others = self._others or self._other_modules()

    def watch(self, value: object, file: str, name: str) -> None:
        """Look from now on at the value of a shared fixture too."""
        self._add([(value, HeldAt(file, name, f"fixture {name}"))])

    def take_changes(self, filled: Collection[str], here: str) -> dict[str, str]:
        """Return what holds something else than at the last call, and note what is there now.

        Args:
            filled: The names under which something may have come that counts for nobody.
            here: The file of the test that ran since.

        Returns:
            For each file of tests that holds it in its own module, and for "" if all tests may see it, a digest of what is held
            there now; "" if that cannot be told.
        """
        around, left, new = self._surroundings(), dict[str, dict[str, object]](), list[tuple[object, HeldAt]]()
        if around != self._around:
            is_told = self._around is not None and around[1:] == self._around[1:]
            left[""] = {"": around.told if is_told else UNTOLD}
        for holder, place, before, now in self._changed():
            keys = {key for key in before.keys() | now.keys() if not _is_same(before.get(key, gc), now.get(key, gc))}
            new += [(now.get(key), _within(place, key)) for key in keys]
            keys -= {key for key in keys if key in filled or _is_of_tools(key)}
            if keys and place.name not in filled:
                pairs = [(key, now[key]) if key in now else (key,) for key in before | now if key in keys]
                what = pairs if isinstance(holder, dict) else contents_of(holder, self._known)
                left.setdefault(place.file, {})[self._known[id(holder)]] = UNTOLD if what is None else what
        if not (left or new):
            return dict.fromkeys(self._unseen & {"", here}, "")
        digests = {file: digest_of([dict(sorted(what.items()))], self._known) for file, what in left.items()}
        digests |= dict.fromkeys(self._unseen & {"", here}, "")
        self._add(new, len(self._known) + MAX_LEFT)
        self.begin()
        return digests

    def is_left_elsewhere(self) -> bool:
        """Return whether an attribute of another module differs from the last call, but for modules and what was None."""
        before, self._others = self._others, self._other_modules()
        both = ((before[name], self._others[name]) for name in before.keys() & self._others.keys())
        return any(
            not (value is None or isinstance(now, ModuleType) or _is_same(value, now))
            for then, there in both
            if [*then] != [*there] or not _are_same([*then.values()], [*there.values()])
            for key in then.keys() | there.keys()
            for value, now in ((then.get(key, gc), there.get(key, gc)),)
        )

    def _other_modules(self) -> dict[str, dict[str, object]]:
        """Return their attributes: of plain modules alone, for a lazy one runs when it is asked for its own."""
        return {
            name: dict(vars(each))
            for name, each in sys.modules.copy().items()
            if name not in self._modules and name.partition(".")[0] not in TESTERS and type(each) is ModuleType
        }

    def _surroundings(self) -> ProcessState:
        where: Path | None = None
        with suppress(FileNotFoundError):
            where = Path.cwd()
        loggers = [logging.root, *logging.root.manager.loggerDict.values()]
        return ProcessState(
            (
                {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"},
                (where, [*sys.path], repr(decimal.getcontext()), locale.setlocale(locale.LC_ALL), sys.getrecursionlimit()),
                {each.name: each.level for each in loggers if isinstance(each, logging.Logger) and each.level},
                self._registrations(),
            ),
            {*threading.enumerate()},
            [id(sys.modules.get(name)) for name in self._modules],
            {id(variable): id(value) for variable, value in contextvars.copy_context().items()},
        )

    def _registrations(self) -> list[list[str]]:
        """Return the names of the tree's abstract classes with which classes were registered, each with the names of these."""
        key = (abc.get_cache_token(), len(self._abstract))
        if key != self._registered[0]:
            registries = [(each, [ref() for ref in _abc._get_dump(each)[0]]) for each in self._abstract]
            named = (
                [type.__repr__(each) for each in (holder, *held) if each is not None]
                for holder, held in registries
                if any(held)
            )
            self._registered = key, [[name, *sorted(names)] for name, *names in named]
        return self._registered[1]

    def _changed(self) -> Iterator[tuple[Any, HeldAt, dict[object, object], dict[object, object]]]:
        """Yield what holds something else than before, where that is, and what it held and holds."""
        for number in [*self._touched()]:
            holder, before = self._held[number], self._contents[number]
            inside = gc.get_referents(holder)
            is_opaque = number in self._opaque
            if _are_same(inside, self._inside[number]) and not (is_opaque and before[""] != str(_state(holder))):
                continue
            self._inside[number], self._contents[number] = inside, _content(holder)
            self._flat.pop(number // TOGETHER, None)
            yield holder, self._places[number], before, self._contents[number]

    def _touched(self) -> Iterator[int]:
        """Yield the numbers of all that may hold something else than before. Many are asked at once, which takes little."""
        yield from self._opaque
        for part in range(-(-len(self._held) // TOGETHER)):
            numbers = range(part * TOGETHER, min((part + 1) * TOGETHER, len(self._held)))
            if part not in self._flat:
                self._flat[part] = [*chain.from_iterable(self._inside[number] for number in numbers)]
            if not _are_same(gc.get_referents(*self._held[numbers.start : numbers.stop]), self._flat[part]):
                yield from numbers

    def _hold(self, holder: object, place: HeldAt) -> None:
        self._opaque |= {len(self._held)} if _state(holder) is not None else set()
        self._flat.pop(len(self._held) // TOGETHER, None)
        self._name(holder, place)
        self._held.append(holder)
        self._places.append(place)
        self._inside.append(gc.get_referents(holder))
        self._contents.append(_content(holder))

    def _name(self, value: object, place: HeldAt) -> None:
        """Give an object a name that it has in each process in which the same things came to the same places."""
        if id(value) not in self._known:
            self._counts[place.path] += 1
            self._known[id(value)] = f"{place.path} {self._counts[place.path]}"

    def _add(self, waiting: list[tuple[Any, HeldAt]], most: int = MAX_OBJECTS) -> None:
        """Look at these objects, and at what they hold, until so many are known."""
        while waiting and len(self._known) < most:
            value, place = waiting.pop()
            kind = type(value)
            if kind in ATOMS or id(value) in self._known or isinstance(value, ModuleType):
                continue
            self._name(value, place)
            self._kept.append(value)
            attributes, inside = attributes_of(value), gc.get_referents(value)
            if isinstance(value, type):
                if value.__module__ in self._modules:
                    attributes = next((each for each in inside if type(each) is dict and "__module__" in each), {})
                    of_class = HeldAt(place.file, "", f"{value.__module__}.{value.__qualname__}")
                    self._hold(attributes, of_class)
                    self._abstract += [value] if ISINSTANCE in attributes else []
                    waiting += [(each, _within(of_class, key)) for key, each in attributes.items() if key != ISINSTANCE]
            elif kind is FunctionType:
                is_known = value.__module__ in self._modules or value.__closure__
                waiting += [(each, place) for each in inside if is_known and type(each) in (dict, tuple)]
            elif kind.__module__ in self._modules or is_of_standard(kind):
                if attributes is None or isinstance(value, CONTAINERS) or _state(value) is not None:
                    self._hold(value, place)
                if attributes is not None:
                    self._hold(attributes, place)
                of_tools = [id(each) for key, each in (attributes or {}).items() if _is_of_tools(key)]
                within = (*inside, *(attributes or {}).values())
                waiting += [(each, place) for each in within if id(each) not in of_tools]
        self._unseen |= {place.file for _, place in waiting}


def _is_of_tools(key: object) -> bool:
    return isinstance(key, str) and (key in OF_TOOLS or key.startswith(OF_HYPOTHESIS))


def _within(place: HeldAt, key: object) -> HeldAt:
    """Return where an object lies that something in this place holds by a key."""
    return place if place.name else HeldAt(place.file, str(key), f"{place.path}.{key}")


def _content(holder: Any) -> dict[object, object]:
    """Return what an object holds: a table's values by their keys, the referents of others in order, and their hidden state."""
    if isinstance(holder, dict):
        return dict.copy(holder)
    return {**dict(enumerate(gc.get_referents(holder))), "": str(_state(holder))}


def _state(value: Any) -> list[object] | None:
    """Return the numbers and texts that an object of the standard library hides, as they are pickled; None if it hides none."""
    kind: Any = type(value)
    hidden = list[object]()
    if not _hides(kind):
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


@cache
def _hides(kind: Any) -> bool:
    """Return whether objects of a class may hide something that changes. No descriptor does."""
    is_plain = all(getattr(kind, name, None) is getattr(object, name, None) for name in PICKLED)
    has_attributes = kind.__flags__ & OF_PYTHONS_OWN and kind.__dictoffset__
    is_fixed = is_plain or has_attributes or issubclass(kind, CONTAINERS) or hasattr(kind, "__get__")
    return is_of_standard(kind) and not is_fixed and kind.__hash__ in IDENTITY


def _are_same(some: list[object], others: list[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _is_same(this: object, other: object) -> bool:
    return this is other or (type(this) is type(other) and type(this) in ATOMS and this == other)
