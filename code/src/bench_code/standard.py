"""Knows which parts of the standard library only bind a name, and which of its decorators and calls only make a value."""

from __future__ import annotations

import importlib
import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

STANDARD = frozenset(
    {
        *("abc", "argparse", "ast", "base64", "bisect", "collections", "contextlib", "copy", "csv", "dataclasses", "datetime"),
        *("decimal", "enum", "functools", "gettext", "glob", "hashlib", "heapq", "inspect", "io", "itertools", "json"),
        *("keyword", "locale", "math", "numbers", "operator", "os", "pathlib", "pprint", "random", "re", "shutil", "string"),
        *("struct", "sys", "tempfile", "textwrap", "threading", "time", "traceback", "types", "typing", "unicodedata", "uuid"),
        *("warnings", "weakref"),
    }
)
"""Modules that pytest has loaded before it imports a test. Another import of them runs no code and cannot fail."""
WITHIN = frozenset({"collections.abc", "os.path"})
"""Submodules that are loaded together with them."""
PURE = {"property", "staticmethod", "classmethod", "typing.overload", "functools.cache", "functools.lru_cache"} | {
    "abc.abstractmethod",
    "contextlib.contextmanager",
    "functools.cached_property",
}
"""Decorators that only make a value."""
CONSTRUCTORS = {
    *("collections.Counter", "collections.OrderedDict", "collections.deque", "datetime.date", "datetime.datetime"),
    *("datetime.time", "datetime.timedelta", "decimal.Decimal", "gettext.NullTranslations", "itertools.count"),
    *("pathlib.PurePath", "pathlib.PurePosixPath", "re.compile", "threading.Lock", "threading.RLock", "threading.local"),
    "typing.TypeVar",
}
"""Functions that only make a value, if they do not fail."""
PLAIN_BASES = (object, dict, list, set)
"""Built-in classes, beside exceptions, whose subclasses run no code while they are made."""
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
}


def is_loaded(module: str, name: str = "") -> bool:
    """Return whether an import of a module, or of a name from it, only binds a name."""
    known = module in STANDARD or module in WITHIN
    return known and (not name or is_standard(f"{module}.{name}"))


@cache
def is_standard(name: str) -> bool:
    """Return whether a dotted name is a member of a module of the standard library."""
    module, _, last = name.rpartition(".")
    return (module in STANDARD or module in WITHIN) and member(name) is not None and bool(last)


@cache
def member(name: str) -> object:
    """Return what a dotted name of the standard library stands for; None if there is no such name, or if it is deprecated."""
    module, _, last = name.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return getattr(importlib.import_module(module), last)
        except (ImportError, AttributeError, Warning):
            return None


def makes(name: str, arguments: Sequence[object], named: Mapping[str, object]) -> bool:
    """Return whether a call with these constants only makes a value, without an error or a warning."""
    if name not in CONSTRUCTORS:
        return False
    function = member(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            function(*arguments, **named)  # type: ignore[operator]
        except Exception:
            return False
    return True


def compared(name: str, comparison: str, constant: object) -> bool | None:
    """Return the result of comparing Python's version or platform with a constant; None if the name is neither."""
    present = {"sys.version_info": tuple(sys.version_info), "sys.platform": sys.platform}.get(name)
    if comparison not in COMPARISONS or present is None or type(constant) is not type(present):
        return None
    try:
        return COMPARISONS[comparison](present, constant)
    except TypeError:
        return None
