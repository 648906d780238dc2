"""Which executions a change of skeletons reaches: those whose code mentions a name that has changed, or may have.

Where more than names may have changed, or code can reach names that it does not mention, each execution that relies on the
skeleton is reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import PurePath

from bench.codebase.mentions import ANY, BARE, STAR
from bench.codebase.record import ABSENT, Fact, Record
from bench.codebase.surface import Surface, TopStatement

Modules = frozenset[tuple[str, str]]
"""Modules, each by its path and its skeleton's digest."""


class NameChange:
    """What differs between two versions of a module's skeleton.

    Args:
        path: The module's path.
        before: The older surface; None where it is not known.
        after: The present surface; None where it is not known.

    Attributes:
        names: The names that mean something else, or are new or gone; None where more than names may differ.
        gone: Those of them that are bound no more, and `added` those that were not bound before.
    """

    def __init__(self, path: str, before: Surface | None, after: Surface | None):
        file = PurePath(path)
        self.module = {BARE + (file.parent.name if file.name == "__init__.py" else file.stem)}
        self.after = after
        self.names: frozenset[str] | None = None
        self.gone = self.added = frozenset[str]()
        if before is not None and after is not None:
            self._compare(before.statements, after.statements)

    def _compare(self, before: tuple[TopStatement, ...], after: tuple[TopStatement, ...]) -> None:
        kept = Counter(each.digest for each in before) & Counter(each.digest for each in after)
        (stayed, left), (stays, came) = (_parted(statements, kept) for statements in (before, after))
        moved = [each.digest for each in stayed] != [each.digest for each in stays]
        differing = (*left, *came)
        if moved or any(each.kind != "binding" for each in differing):
            return
        self.names = frozenset(name for each in differing for name in each.binds)
        bound, now = ({name for each in statements for name in each.binds} for statements in (before, after))
        self.gone, self.added = frozenset(bound - now), frozenset(now - bound)


def _parted(statements: Iterable[TopStatement], kept: Counter[str]) -> tuple[list[TopStatement], list[TopStatement]]:
    """The statements that are in both versions, and the others."""
    left, stayed, others = Counter(kept), list[TopStatement](), list[TopStatement]()
    for each in statements:
        (stayed if left[each.digest] > 0 else others).append(each)
        left[each.digest] -= 1
    return stayed, others


class RecordNames:
    """What one record says of names: the modules that it relies on, and what the bodies that ran in it mention."""

    def __init__(self, record: Record, body: Callable[[str], frozenset[str] | None]):
        self.modules: Modules = frozenset((fact.name, fact.value) for fact in record.facts if fact.kind == "skeleton")
        self.collected = record.name if record.kind == "collection" else ""
        self._bodies = [fact for fact in record.facts if fact.kind == "body"]
        self._body = body

    @cached_property
    def mentions(self) -> frozenset[str]:
        every = set[str]()
        for fact in self._bodies:
            known = self._body(fact.value)
            every |= {ANY} if known is None else known
            every |= {part.partition("#")[0] for part in fact.name.partition("::")[2].split(".")}
        return frozenset(every)


class Reach:
    """What a change of skeletons reaches.

    Args:
        changes: The skeletons that differ now, each with what differs.
        surface: The surface of a skeleton by its digest; None where it is not known.
        body: What a body mentions, by its digest; None where that is not known.

    Attributes:
        named: The changed skeletons that reach only what mentions a name that changed.
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
        self._tainted: dict[tuple[Modules, frozenset[str]], frozenset[str] | None] = {}

    def names_of(self, record: Record) -> RecordNames:
        """What a record says of names, made once."""
        if id(record) not in self._names:
            self._names[id(record)] = record, RecordNames(record, self._body)
        return self._names[id(record)][1]

    def touches(self, records: Iterable[Record]) -> bool:
        """Whether an execution with these records may come out otherwise now, as far as skeletons tell."""
        told = [self.names_of(record) for record in records]
        modules: Modules = frozenset().union(*(each.modules for each in told))
        collected = frozenset(each.collected for each in told if each.collected)
        if (modules, collected) not in self._tainted:
            self._tainted[modules, collected] = self._tainted_in(modules, collected)
        tainted = self._tainted[modules, collected]
        return tainted is None or any(not tainted.isdisjoint(each.mentions) for each in told)

    def _tainted_in(self, modules: Modules, collected: frozenset[str]) -> frozenset[str] | None:
        """The names that mean something else in any of these modules; None where an execution may differ without naming one."""
        changed = {module: self._changes[module] for module in modules if module in self._changes}
        if not changed:
            return frozenset()
        for (path, _), change in changed.items():
            if change.names is None or _is_looked_through(path, collected):
                return None
        if not any(change.names for change in changed.values()):
            return frozenset()
        statements = list[TopStatement]()
        for module in modules:
            surface = changed[module].after if module in changed else self._surface(module[1])
            if surface is None and module[1] != ABSENT:
                return None
            statements += surface.statements if surface is not None else ()
        return _closed(changed.values(), statements)


def _is_looked_through(path: str, collected: frozenset[str]) -> bool:
    """Whether pytest looks at all names of a module."""
    return PurePath(path).name == "conftest.py" or any(path == name or path.endswith(f"/{name}") for name in collected)


def _closed(changes: Iterable[NameChange], statements: list[TopStatement]) -> frozenset[str] | None:
    """Names, with what statements bind that mention one of them; None where such a statement may do more than bind."""
    names, gone, appeared = {ANY}, set[str](), False
    for change in changes:
        names |= (change.names or frozenset()) | change.module
        gone |= change.gone
        appeared = appeared or bool(change.added or change.gone)
    waiting, grew = statements, True
    while grew:
        grew, left = False, list[TopStatement]()
        for each in waiting:
            hit = each.mentions & names
            starred = STAR in each.mentions and (appeared or "__all__" in names)
            if not hit and not starred:
                left.append(each)
                continue
            if each.kind == "other" or starred or (each.kind == "import" and hit & gone):
                return None
            handed = all(word.startswith(BARE) for word in hit)  # the module itself, under a name of its own
            names |= {BARE + name for name in each.binds} if handed else set()
            names |= each.binds if not (handed and each.kind == "import") else set()
            grew = True
        waiting = left
    return frozenset(names)
