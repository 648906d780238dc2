"""Decides which executions a change of skeletons reaches: the executions whose code mentions a name that may have changed.

If more than names may have changed, or if code can reach names that it does not mention, the change reaches each execution that
relies on the skeleton.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from pathlib import PurePath
from typing import Self

from bench_code.mentions import ANY, BARE, PLAIN, STAR, mentions_in
from bench_code.record import ABSENT, Fact, Record
from bench_code.surface import Surface, TopStatement, readers_of

Modules = frozenset[tuple[str, str]]
"""Modules, each with its path and its skeleton's digest."""


class NameChange:
    """The difference between two versions of a module's skeleton.

    Args:
        path: The module's path.
        before: The older surface; None if it is not known.
        after: The present surface; None if it is not known.

    Attributes:
        names: The names that have another meaning, or are new or gone; None if more than names may differ.
        gone: Those of the names that the module no longer binds.
        exported: The new and gone names that `from module import *` takes.
        imports: The new imports of modules of the tree. What they load must be checked apart.
        parts: The keys of the parts of statements that differ. Few users read them.
        is_drawn: Whether no text differs, and one statement gives another value each time.
    """

    def __init__(self, path: str, before: Surface | None, after: Surface | None):
        file = PurePath(path)
        self.path = path
        self.module = {BARE + (file.parent.name if file.name == "__init__.py" else file.stem)}
        self.after = after
        self.names: frozenset[str] | None = None
        self.gone = self.exported = self.parts = frozenset[str]()
        self.imports: tuple[TopStatement, ...] = ()
        self.is_drawn = False
        if before is not None and after is not None:
            self._compare(before.statements, after.statements)

    @classmethod
    def of(cls, path: str, names: str) -> Self:
        """Return the difference that a statement makes which gives its names, with a blank between, another value each time."""
        change = cls(path, None, None)
        change.names, change.is_drawn = frozenset(names.split()), True
        return change

    def _compare(self, before: tuple[TopStatement, ...], after: tuple[TopStatement, ...]) -> None:
        kept = Counter(each.digest for each in before) & Counter(each.digest for each in after)
        (stayed, left), (stays, came) = (_parted(statements, kept) for statements in (before, after))
        pairs = zip(stayed, stays, strict=True)
        parts = {part for was, now in pairs for part, *_ in {*_numbered(was.parts)} ^ {*_numbered(now.parts)}}
        moved = [each.digest for each in stayed] != [each.digest for each in stays]
        if (
            moved
            or any(each.kind != "binding" for each in left)
            or any(each.kind not in ("binding", "import") for each in came)
        ):
            return
        self.imports = tuple(each for each in came if each.kind == "import")
        self.names = frozenset(name for each in (*left, *came) for name in each.binds)
        self.parts = frozenset(parts)
        bound, now = ({name for each in statements for name in each.binds} for statements in (before, after))
        self.gone = frozenset(bound - now)
        self.exported = frozenset(name for name in bound ^ now if _is_exported(name, after))


def _is_exported(name: str, statements: Iterable[TopStatement]) -> bool:
    """Return whether `from module import *` may take a name from a module with these statements."""
    listing = [each for each in statements if {"__all__", f"{PLAIN}__all__"} & (each.binds | each.mentions)]
    if not listing:
        return not name.startswith("_")
    computed = any(each.kind != "binding" or any(word.startswith((BARE, ANY)) for word in each.mentions) for each in listing)
    return computed or any(name in each.mentions for each in listing)


def _parted(statements: Iterable[TopStatement], kept: Counter[str]) -> tuple[list[TopStatement], list[TopStatement]]:
    """Return the statements that both versions have, and the others."""
    left, stayed, others = Counter(kept), list[TopStatement](), list[TopStatement]()
    for each in statements:
        (stayed if left[each.digest] > 0 else others).append(each)
        left[each.digest] -= 1
    return stayed, others


def _numbered(parts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int, str]]:
    """Yield the parts of a statement, each with its number among those of the same key."""
    count = Counter[str]()
    for key, of in parts:
        count[key] += 1
        yield key, count[key], of


class RecordNames:
    """The modules that one record relies on, and the names that the recorded bodies mention."""

    def __init__(self, record: Record, body: Callable[[str], frozenset[str] | None]):
        self.modules: Modules = frozenset((fact.name, fact.value) for fact in record.facts if fact.kind == "skeleton")
        self.collected = record.name if record.kind == "collection" else ""
        self.drawn = frozenset(fact.name for fact in record.facts if fact.kind == "drawn")
        self._bodies = [fact for fact in record.facts if fact.kind == "body"]
        self._body = body

    @cached_property
    def mentions(self) -> frozenset[str]:
        every = set[str]()
        for fact in self._bodies:
            known = self._body(fact.value)
            every |= {ANY} if known is None else mentions_in(fact.name.partition("::")[0], known)
            every |= {part.partition("#")[0] for part in fact.name.partition("::")[2].split(".")}
            every.add(fact.name.partition("#")[0])
        return frozenset(every)


class Reach:
    """Decides which executions a change of skeletons reaches.

    Args:
        changes: For each skeleton that differs now, the difference.
        surface: Returns the surface of a skeleton by its digest; None if it is not known.
        body: Returns the names that a body mentions, by the body's digest; None if they are not known.

    Attributes:
        named: The changed skeletons whose change reaches only code that mentions a name.
    """

    def __init__(
        self,
        changes: Mapping[Fact, NameChange],
        surface: Callable[[str], Surface | None],
        body: Callable[[str], frozenset[str] | None],
    ):
        self.named = {fact for fact, change in changes.items() if change.names is not None}
        self._changes = {(fact.name, fact.value): change for fact, change in changes.items()}
        self._surface, self._body = surface, body
        self._names: dict[int, tuple[Record, RecordNames]] = {}
        self._tainted: dict[tuple[Modules, frozenset[str], frozenset[str]], Set[str] | None] = {}

    def names_of(self, record: Record) -> RecordNames:
        """Return the modules and names of a record; they are read once."""
        if id(record) not in self._names:
            self._names[id(record)] = record, RecordNames(record, self._body)
        return self._names[id(record)][1]

    def touches(self, records: Iterable[Record]) -> bool:
        """Return whether an execution with these records may have another result, because of a changed skeleton."""
        names = [self.names_of(record) for record in records]
        modules: Modules = frozenset().union(*(each.modules for each in names))
        collected = frozenset(each.collected for each in names if each.collected)
        drawn = frozenset().union(*(each.drawn for each in names))
        key = modules, collected, drawn
        if key not in self._tainted:
            self._tainted[key] = self._tainted_in(*key)
        tainted = self._tainted[key]
        return tainted is None or any(not tainted.isdisjoint(each.mentions) for each in names)

    def _tainted_in(self, modules: Modules, collected: frozenset[str], drawn: frozenset[str]) -> Set[str] | None:
        """Return the names with another meaning in any of these modules; None if an execution that mentions none may differ."""
        changes = [self._changes[module] for module in modules if module in self._changes]
        changes += [NameChange.of(*name.split("::")) for name in drawn]
        for change in changes:
            if change.names is None or _is_looked_through(change.path, collected):
                return None
        if not any(change.names or change.parts for change in changes):
            return frozenset()
        surfaces = self._present(modules)
        if surfaces is None:
            return None
        imports = [(change.path, each.imports) for change in changes for each in change.imports]
        loaded = {imported_path(path, imported, surfaces) for path, imported in imports}
        if "" in loaded:
            return None
        meanings = ChangedMeanings(changes, [PurePath(path) for path in loaded])
        return meanings.names if meanings.follow(surfaces) else None

    def _present(self, modules: Modules) -> dict[str, Surface] | None:
        """Return the present surfaces of modules by their paths, without those that are gone; None if one is not known."""
        surfaces = dict[str, Surface]()
        for module in modules:
            surface = self._changes[module].after if module in self._changes else self._surface(module[1])
            if surface is not None:
                surfaces[module[0]] = surface
            elif module[1] != ABSENT:
                return None
        return surfaces


def imported_path(path: str, imports: str, surfaces: Mapping[str, Surface]) -> str:
    """Return the file of a package from which a module of the same package imports a name.

    Args:
        path: The path of the module that imports.
        imports: The module as the import spells it, and after a blank the name.
        surfaces: The present surfaces of all modules that an execution loads, by their paths.

    Returns:
        The path; "" if it is not known, or if the import may fail, or do more than bind a name. It does no more if the
        execution loads the file anyway, and if the file binds this name, only binds names and imports nothing of the tree.
    """
    module, _, name = imports.partition(" ")
    folders = PurePath(path).parts[:-1]
    packages = [end for end in range(1, len(folders) + 1) if "/".join((*folders[:end], "__init__.py")) in surfaces]
    if not name or not packages or packages != list(range(packages[0], len(folders) + 1)):
        return ""
    level = len(module) - len(module.lstrip("."))
    spelled = module.lstrip(".").split(".")
    if not level and spelled[0] == folders[packages[0] - 1]:
        parent, spelled = packages[0], spelled[1:]
    else:
        parent = len(folders) + 1 - level if level else 0
    target = "/".join((*folders[:parent], *spelled)) + ".py"
    surface = surfaces.get(target)
    if parent not in packages or len(spelled) != 1 or surface is None:
        return ""
    plain = all(each.kind == "binding" or each.imports.startswith("__future__ ") for each in surface.statements)
    return target if plain and any(name in each.binds for each in surface.statements) else ""


def _is_looked_through(path: str, collected: frozenset[str]) -> bool:
    """Return whether pytest reads all names of a module: a conftest, or a file that it collects tests from."""
    return PurePath(path).name == "conftest.py" or any(path == name or path.endswith(f"/{name}") for name in collected)


class ChangedMeanings:
    """The names that have another meaning because some names have.

    Args:
        changes: What changed.
        early: The files of modules that may be loaded earlier than before. Code that looks for them in their package can tell.

    Attributes:
        names: The names: plain for attributes and texts, and behind the module's path and `PLAIN` for code of the module.
    """

    def __init__(self, changes: Iterable[NameChange], early: Iterable[PurePath]):
        self.names = {ANY} | {BARE + folder for path in early for folder in path.parts[:-1]}
        self._loaded = {path.stem for path in early} | {f"{path.parent}/__init__.py{PLAIN}{path.stem}" for path in early}
        self._gone, self._exported = set[str](), {path.stem for path in early}
        self._drawn = set[tuple[str, frozenset[str]]]()
        for change in changes:
            self._drawn |= {(change.path, change.names or frozenset())} if change.is_drawn else set()
            self.names |= change.module if change.names or any(change.parts) else set()
            self._add(change.path, change.names or ())
            for part in change.parts:
                self.names |= {f"{change.path}::{part}"} | {
                    change.path + word if word.startswith(PLAIN) else word for word in readers_of(part)
                }
            self._gone |= change.gone
            self._exported |= change.exported

    def _add(self, path: str, names: Iterable[str]) -> None:
        for name in names:
            self.names |= {name, f"{path}{PLAIN}{name}"}

    def follow(self, surfaces: Mapping[str, Surface]) -> bool:
        """Add the names that are bound by statements which mention such a name. Return False if such a statement may do more.

        Args:
            surfaces: The present surfaces of all modules, by their paths.
        """
        starred = {path for path, surface in surfaces.items() if any(STAR in each.mentions for each in surface.statements)}
        waiting = [
            (path, each, mentions_in(path, each.mentions))
            for path, surface in surfaces.items()
            for each in surface.statements
            if (path, each.binds) not in self._drawn  # such a statement mentions the names that it binds
        ]
        known = 0
        while known < len(self.names):
            known, left = len(self.names), list[tuple[str, TopStatement, frozenset[str]]]()
            for path, each, mentioned in waiting:
                hit = mentioned & (self.names if each.kind == "import" else self.names | self._loaded)
                if not hit and not self._takes_all(each):
                    left.append((path, each, mentioned))
                elif not self._binds(path, each, hit):
                    return False
            for path in starred:  # a star gives the names of other modules to this one
                self.names |= {f"{path}{PLAIN}{name}" for name in self.names if name.isidentifier()}
            waiting = left
        self.names |= self._loaded
        return True

    def _takes_all(self, statement: TopStatement) -> bool:
        return STAR in statement.mentions and bool(self._exported or "__all__" in self.names)

    def _binds(self, path: str, statement: TopStatement, hit: frozenset[str]) -> bool:
        """Add the names that a statement binds, which mentions these names. Return False if the statement may do more."""
        if (
            statement.kind not in ("binding", "import")
            or self._takes_all(statement)
            or (statement.kind == "import" and hit & self._gone)
        ):
            return False
        handed = all(word.startswith(BARE) for word in hit)  # the module itself, under another name
        self.names |= {BARE + name for name in statement.binds} if handed else set()
        if not (handed and statement.kind == "import"):
            self._add(path, statement.binds)
        return True
