"""The registry of the suite's parts by kind: the built-in parts, and the parts of other packages.

A kind of part, for instance a fault effect, has one type of entry. An entry says the part's name, what it can do and what it
needs, so that no code asks for a part by its name to know that. `bench.entries` names the modules of our entries by kind.
Another package's entries are read in the same way, from the entry points that it declares in the kind's group:

    [project.entry-points."recovery_bench.effects"]
    loud = "loud_parts.effects:PARTS"      # an entry, or several

Nothing is imported before a part of its kind is asked for. What a package cannot provide is left out and reported in one line
(`Registry.left_out`); all else works.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from bench.common.errors import ConfigError, nearest
from bench.common.raised import message_of, place_of, type_and_message
from bench.common.signals import presses_of_ctrl_c

DISTRIBUTION = "recovery-bench"
GROUPS = "recovery_bench."
"""The beginning of each group of entry points."""
ENTRIES = "bench.entries:ENTRIES"
"""Import paths of our entries, by the plural of their kind."""


@dataclass(frozen=True)
class Part:
    """The fields that entries of every kind have.

    name      the part's name in configs and tables
    extra     the optional dependency that brings its packages: `pip install '.[EXTRA]'`
    lineage   the published work that it reproduces
    package   the distribution that the part comes from, with its version; "" for ours
    home      the module of the part's entry; "" for ours. The registry sets `package` and `home`
    """

    name: str
    extra: str = field(default="", kw_only=True)
    lineage: str = field(default="", kw_only=True)
    package: str = field(default="", kw_only=True)
    home: str = field(default="", kw_only=True)

    @property
    def keys(self) -> Sequence[Hashable]:
        """The keys under which the part is found. No two parts of a kind share a key."""
        return (self.name,)

    @property
    def modules(self) -> Sequence[str]:
        """The modules with the code that a trial executes."""
        return ()

    def load(self, path: str) -> Any:
        """Return the object at an import path of this entry.

        Args:
            path: An import path, as a field of the entry has it.

        Returns:
            The attribute.

        Raises:
            ConfigError: The part is another package's, and its module or the attribute cannot be imported.
        """
        if not self.package:
            return attribute_at(path)
        try:
            with foreign_code(self.home):
                return attribute_at(path)
        except Unusable as error:
            needs = f"; it needs: pip install '{self.package.split()[0]}[{self.extra}]'" if self.extra else ""
            raise ConfigError(f"{self.package}: '{path}' of '{self.name}' cannot be imported: {error}{needs}") from error

    def refuse_unknown(self, field_: str, values: Iterable[str], known: Sequence[str]) -> None:
        """Reject an entry with an unknown value in a field.

        Args:
            field_: The entry's field.
            values: The field's values.
            known: The values that it may have.

        Raises:
            ValueError: A value is not known; the message names the nearest.
        """
        for value in values:
            if value not in known:
                raise ValueError(f"'{self.name}' says {field_} = '{value}'; {nearest(str(value), known)}")


P = TypeVar("P", bound=Part)


class LoadedParts(NamedTuple, Generic[P]):
    """The parts by key, the parts in order, and the reasons why parts are missing, a line each."""

    by_key: Mapping[Hashable, P]
    in_order: Sequence[P]
    left_out: list[str]


class Unusable(Exception):
    """The code of another package cannot be used. The text gives the reason in one line."""


class Registry(Generic[P]):
    """All parts of one kind.

    word     a part's noun
    plural   the noun's plural; with GROUPS before it, the group of entry points
    entry    the type of its entries
    in_folders    returns the entries of parts that lie in folders
    """

    def __init__(self, word: str, entry: type[P], plural: str = "", in_folders: Callable[[], Iterable[P]] = tuple):
        self.word, self.plural, self.entry, self.in_folders = word, plural or f"{word}s", entry, in_folders
        self.group = f"{GROUPS}{self.plural}"

    def __iter__(self) -> Iterator[P]:
        """Iterate over each part once, built-in parts first."""
        return iter(self._parts.in_order)

    def __getitem__(self, key: Hashable) -> P:
        """Return the part with this key. Raises KeyError."""
        return self.by_key[key]

    def __contains__(self, key: object) -> bool:
        return key in self.by_key

    @property
    def names(self) -> Sequence[str]:
        """The names of the parts, built-in parts first."""
        return list(dict.fromkeys(part.name for part in self))

    def named(self, name: str, *more: str) -> P:
        """Return the part of this name.

        Args:
            name: The name, as a config has it.
            more: Further valid names, for the message.

        Returns:
            The part's entry.

        Raises:
            ConfigError: There is none; the message has the nearest name.
        """
        if name not in self:
            raise ConfigError(self.unknown(name, more))
        return self[name]

    def unknown(self, name: str, more: Iterable[str] = ()) -> str:
        """Return the error message for a name that no part has.

        Args:
            name: The name.
            more: Further valid names.

        Returns:
            One line, with the nearest name and the parts that were left out.
        """
        return "; ".join((f"unknown {self.word} '{name}'; {nearest(name, (*self.names, *more))}", *self.left_out))

    @property
    def by_key(self) -> Mapping[Hashable, P]:
        """The parts by key."""
        return self._parts.by_key

    @property
    def left_out(self) -> Sequence[str]:
        """The reasons why parts of other packages are missing, a line each."""
        return self._parts.left_out

    @cached_property
    def _parts(self) -> LoadedParts[P]:
        """All parts, from folders, from our entries, and from other packages."""
        parts: dict[Hashable, P] = {key: part for part in self.in_folders() for key in part.keys}
        for path in attribute_at(ENTRIES).get(self.plural, ()):
            for part in self._entries(attribute_at(path)):
                parts |= dict.fromkeys(part.keys, part)
        points, unread = _entry_points()
        left_out = list(unread)
        for point, distribution in points:
            if point.group == self.group:
                self._add(point, distribution, parts, left_out)
        return LoadedParts(parts, tuple(dict.fromkeys(parts.values())), left_out)

    def leave_out(self, part: P, why: str) -> None:
        """Leave out a part that turned out to be unusable.

        Args:
            part: The part, of another package.
            why: Why, in one line.
        """
        self._parts.left_out.append(f"{part.package}: its {self.word} '{part.name}' is left out: {why}")

    def _add(
        self, point: metadata.EntryPoint, distribution: metadata.Distribution, parts: dict[Hashable, P], left_out: list[str]
    ) -> None:
        """Add the parts of an entry point to `parts`, and a line to `left_out` for each part that cannot be used."""
        package = f"{distribution.name} {distribution.version}"
        if required_version := _required_version(distribution):
            left_out.append(f"{package} is left out: it needs {required_version}, and this is {metadata.version(DISTRIBUTION)}")
            return
        home = point.value.partition(":")[0]
        try:
            with foreign_code(Path(str(distribution.locate_file("")))):
                entries = self._entries(attribute_at(point.value))
        except Unusable as error:
            left_out.append(f"{package} is left out: its {self.plural}, '{point.value}', cannot be imported: {error}")
            return
        for entry in entries:
            try:
                with foreign_code(home):
                    part = replace(entry, package=package, home=home)
                    _require_texts(part)
                    keys = dict.fromkeys(part.keys, part)
            except Unusable as error:
                left_out.append(f"{package}: a {self.word} in '{point.value}' is left out: {error}")
                continue
            if other_part := next((parts[key] for key in keys if key in parts), None):
                problem = f"there is one of this name, by {other_part.package or DISTRIBUTION}; it is to be given another"
                left_out.append(f"{package}: its {self.word} '{part.name}' is left out: {problem}")
                continue
            parts |= keys

    def _entries(self, value: Any) -> Sequence[P]:
        """Return the value of an entry point as entries. Raises TypeError if it is neither an entry nor a sequence of them."""
        values = value if isinstance(value, tuple | list) else (value,)
        entries = [entry for entry in values if isinstance(entry, self.entry)]
        if len(entries) < len(values):
            raise TypeError(f"it is no {self.entry.__module__}.{self.entry.__name__}, and no tuple of them")
        return entries


def written_names(plural: str) -> list[str] | None:
    """Return the names of all parts of a kind without importing their modules.

    Args:
        plural: The kind's plural.

    Returns:
        The names in the source code of the built-in parts. None if parts are in folders, if another package declares parts, or
        if a built-in entry does not have its name as its first argument.
    """
    paths = attribute_at(ENTRIES).get(plural)
    if paths is None or any(point.group == f"{GROUPS}{plural}" for point, _ in _entry_points()[0]):
        return None
    names = list[str]()
    for path in paths:
        module, _, attribute = path.partition(":")
        source = Path(__file__).parents[1].joinpath(*module.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8")
        assignments = [statement for statement in ast.parse(source).body if isinstance(statement, ast.Assign)]
        value = next((assignment.value for assignment in assignments if _binds(assignment, attribute)), None)
        for entry in value.elts if isinstance(value, ast.Tuple) else (value,):
            match entry:
                case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                    names.append(name)
                case _:
                    return None
    return names


def _binds(assignment: ast.Assign, name: str) -> bool:
    """Whether an assignment binds this name."""
    return any(isinstance(target, ast.Name) and target.id == name for target in assignment.targets)


@contextmanager
def foreign_code(home: str | Path) -> Iterator[None]:
    """Run the code of another package in the block. Every exception except a Ctrl-C becomes Unusable.

    Args:
        home: The package's folder, or the name of a module of the package that was imported.

    Yields:
        Nothing.

    Raises:
        Unusable: The code raised something.
    """
    with presses_of_ctrl_c() as presses:
        try:
            yield
        except BaseException as error:
            if presses and isinstance(error, KeyboardInterrupt):
                raise
            folder = home if isinstance(home, Path) else Path(getattr(sys.modules.get(home), "__file__", None) or "/").parent
            raise Unusable(why_not_imported(error, folder)) from error


def _require_texts(part: Part) -> None:
    """Raise TypeError if a text field of an entry has another type."""
    for field_ in fields(part):
        value = getattr(part, field_.name)
        if field_.type == "str" and (not isinstance(value, str) or (field_.name == "name" and not value)):
            raise TypeError(f"its {field_.name} is {type(value).__name__}, and no text" if value else "it has no name")


@cache
def _entry_points() -> tuple[Sequence[tuple[metadata.EntryPoint, metadata.Distribution]], Sequence[str]]:
    """Return the entry points of the suite's groups in a fixed order, and a line about each unreadable distribution."""
    declared: dict[str, tuple[metadata.Distribution, Sequence[metadata.EntryPoint]]] = {}
    unread: list[str] = []
    for distribution in metadata.distributions():
        try:
            if GROUPS in (distribution.read_text("entry_points.txt") or ""):
                points = [point for point in distribution.entry_points if point.group.startswith(GROUPS)]
                declared.setdefault(f"{distribution.name}", (distribution, points))  # of two, Python imports the first
        except Exception as error:
            if not isinstance(error, UnicodeDecodeError) or GROUPS.encode() in error.object:
                place = getattr(distribution, "_path", "a package")
                unread.append(
                    f"{Path(str(place)).name} is left out: its entry_points.txt cannot be read: {type_and_message(error)}"
                )
    points_in_order = []
    for _, (distribution, declared_points) in sorted(declared.items(), key=lambda item: item[0]):
        points_in_order += [
            (point, distribution) for point in sorted(declared_points, key=lambda point: (point.group, point.name))
        ]
    return points_in_order, unread


def _required_version(distribution: metadata.Distribution) -> str:
    """Return the version of this package that a distribution requires, if that version is not installed; else ""."""
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415  slow, and few have such a distribution
    from packaging.utils import canonicalize_name  # noqa: PLC0415  the same

    for line in distribution.requires or ():
        with suppress(InvalidRequirement):
            needed = Requirement(line)
            applies = needed.marker is None or needed.marker.evaluate({"extra": ""})
            if canonicalize_name(needed.name) == DISTRIBUTION and applies:
                installed = metadata.version(DISTRIBUTION)
                return "" if needed.specifier.contains(installed, prereleases=True) else f"{DISTRIBUTION}{needed.specifier}"
    return ""


def is_path(name: str) -> bool:
    """Whether a name is an import path, and no name of a registered part.

    Args:
        name: A name in a config.

    Returns:
        True if it has the form `module:attribute`.
    """
    return ":" in name


def attribute_at(path: str) -> Any:
    """Return the object at an import path. Every exception of the import is passed on.

    Args:
        path: `package.module:attribute`, or a module's name.

    Returns:
        The attribute, or the module itself.
    """
    name, _, attribute = path.partition(":")
    module = importlib.import_module(name)
    return getattr(module, attribute) if attribute else module


def module_of(function: Callable[..., Any]) -> str:
    """Return the module of the function inside a partial, a decorator or a callable object.

    Args:
        function: Anything that can be called.

    Returns:
        The module's name.
    """
    while isinstance(function, functools.partial):
        function = function.func
    plain = inspect.unwrap(function)
    return str(plain.__module__ if inspect.isroutine(plain) else type(plain).__module__)


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Make the modules in a folder importable inside this context, as `python -m` does.

    Args:
        folder: The folder.

    Yields:
        Nothing.
    """
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the module may have removed it
            sys.path.remove(str(folder))


def why_not_imported(error: BaseException, folder: Path) -> str:
    """Return why an import failed: the message alone of an ImportError or AttributeError, the type and the message of others.

    Args:
        error: What the import raised.
        folder: The folder of another person's code. If the error is in it, its file and line come first.

    Returns:
        One line.
    """
    if isinstance(error, ImportError | AttributeError):
        return message_of(error)
    return ": ".join(filter(None, (place_of(error, folder), type_and_message(error))))
