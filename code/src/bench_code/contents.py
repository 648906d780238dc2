"""Digests of the content of objects. Two processes compare the digests to find out whether their objects have the same content.

An object has a digest only if its whole content can be read: the state of objects whose classes are written in Python,
containers, code, and objects that the standard library can pickle. No code of the objects' own classes runs.
"""

from __future__ import annotations

import copyreg
import gc
import re
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from operator import attrgetter
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from bench_code.units import digest

MAX_OBJECTS = 5_000
"""The most objects that one digest covers."""
ATOMS = (int, float, complex, str, bytes, bool, range, type(None), type(...), type(NotImplemented))
SETS = (set, frozenset)
SEQUENCES = (list, tuple, deque)
CONTAINERS = (dict, *SETS, *SEQUENCES)
PARTS: dict[type, Callable[[Any], Sequence[object]]] = {
    CodeType: attrgetter("co_code", "co_names", "co_varnames", "co_freevars", "co_consts"),
    re.Match: attrgetter("re", "string", "regs", "pos", "endpos"),
    weakref.ref: lambda value: (value(), value.__callback__),
    **dict.fromkeys((staticmethod, classmethod, property, MethodType, CellType), gc.get_referents),
}
"""A type -> a function that returns the contents of its objects."""
PICKLED = ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
NAMES = ("__slotnames__", "__dict__", "__weakref__")
"""The attributes of a class that are not its members."""


def digest_of(values: Iterable[object], known: Mapping[int, str]) -> str:
    """Return a digest of the content of these values; "" if not all of the content can be read.

    Args:
        values: The values.
        known: The names of objects by their `id`. The name of an object stands for its content.
    """
    parts, seen, waiting = list[str](), dict[int, tuple[int, object]](), [*values][::-1]
    while waiting:
        value = waiting.pop()
        if type(value) in ATOMS:
            parts.append(repr(value))
        elif id(value) in known or id(value) in seen:
            parts.append(f"<{known.get(id(value)) or seen[id(value)][0]}>")
        else:
            seen[id(value)] = len(seen), value
            inside = contents_of(value, known) if len(seen) < MAX_OBJECTS else None
            if inside is None:
                return ""
            parts.append(f"{type(value).__module__}.{type(value).__qualname__} {len(inside)}")
            waiting += reversed(inside)
    return digest("\n".join(parts))


def attributes_of(value: object) -> dict[str, object] | None:
    """Return what an object holds as attributes; None if it holds none. None of its code runs, so a lazy module stays lazy."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return attributes if type(attributes) is dict else None


def is_of_standard(kind: type) -> bool:
    """Return whether a class says that the standard library has it."""
    return str(kind.__module__).partition(".")[0] in sys.stdlib_module_names


def contents_of(value: Any, known: Mapping[int, str]) -> list[object] | None:
    """Return all that an object holds, in an order that does not depend on the process; None if that cannot be told."""
    kind = type(value)
    if isinstance(value, ModuleType):
        attributes = attributes_of(value) or {}
        name = attributes.get("__name__")
        return [name] if sys.modules.get(str(name)) is value else [name, attributes]
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        names = [str(value.__module__), value.__qualname__]
        if _is_named(value, *names):
            return [*names]
        if isinstance(value, type):
            members = {key: each for key, each in vars(value).items() if key not in NAMES}
            return [*names, value.__bases__, *(part for pair in members.items() for part in pair)]
        if isinstance(value, BuiltinFunctionType):
            return [*names, value.__self__]
        around = names[0] if attributes_of(sys.modules.get(names[0])) is value.__globals__ else value.__globals__
        code = (value.__code__, value.__defaults__, value.__kwdefaults__, value.__closure__)
        return [*names, around, *code, value.__name__, value.__doc__, value.__annotations__, vars(value)]
    if isinstance(value, BaseException):
        return None
    if kind in PARTS:
        return [*PARTS[kind](value)]
    inside = _elements(value, known) if isinstance(value, CONTAINERS) else []
    return None if inside is None else _with_state(value, inside)


def _is_named(value: object, module: str, name: str) -> bool:
    """Return whether a class or a function is what its name leads to."""
    holder: object = sys.modules.get(module)
    for each in name.split("."):
        holder = (attributes_of(holder) or vars(holder) if isinstance(holder, ModuleType | type) else {}).get(each)
        holder = getattr(holder, "__func__", holder) if isinstance(holder, staticmethod | classmethod) else holder
    return holder is value


def _elements(value: Any, known: Mapping[int, str]) -> list[object] | None:
    if isinstance(value, dict):
        items = OrderedDict.items(value) if isinstance(value, OrderedDict) else dict.items(value)
        return [part for pair in items for part in pair]
    if isinstance(value, SETS):
        digests = sorted(repr(each) if type(each) in ATOMS else digest_of([each], known) for each in _iterated(value, SETS))
        return [*digests] if all(digests) else None
    return [*_iterated(value, SEQUENCES)]


def _iterated(value: Any, kinds: tuple[Any, ...]) -> Iterator[object]:
    """Return the elements of a container, whatever its class says of them."""
    elements: Iterator[object] = next(each for each in kinds if isinstance(value, each)).__iter__(value)
    return elements


def _with_state(value: Any, inside: list[object]) -> list[object] | None:
    """Return what lies inside an object, with its attributes and all else that pickling knows of it."""
    kind: Any = type(value)
    attributes = attributes_of(value)
    if isinstance(value, CONTAINERS):
        return [*inside, attributes, *_members(value)]
    is_plain = all(getattr(kind, name, None) is getattr(object, name, None) for name in PICKLED)
    if not (is_plain or is_of_standard(kind)):
        return None
    try:
        state = copyreg.dispatch_table[kind](value) if kind in copyreg.dispatch_table else kind.__reduce_ex__(value, 4)
    except Exception:  # what cannot be pickled says so in many ways
        return None
    if isinstance(state, str):
        return [state, getattr(kind, "__module__", None)]
    lists = [each if part < 3 or each is None else [*each] for part, each in enumerate(state)]
    return [*lists, attributes]


def _members(value: object) -> Iterator[object]:
    """Yield the values of an object's slots, and of what C keeps in the like."""
    kind: Any = type(value)
    for each in _descriptors(kind):
        with suppress(AttributeError):
            yield each.__get__(value)


@cache
def _descriptors(kind: Any) -> list[Any]:
    every = (each for base in kind.__mro__ for each in vars(base).values())
    return [each for each in every if type(each) in (MemberDescriptorType, GetSetDescriptorType) and each.__name__ not in NAMES]
