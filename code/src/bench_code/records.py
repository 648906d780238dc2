"""Makes records of finished contexts. A record has the versions of the code that ran, and the files that imports led to."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection
from functools import cache

from bench_code.calls import FunctionKey
from bench_code.naming import PathNames
from bench_code.present import Present
from bench_code.record import CHANCE, CLOCK, ExecutionContext, Fact, Record
from bench_code.surface import drawn_at

STATE = ("body", "file", "status", "listing", "scan", "environment")
"""Kinds of facts that tell what a collection or an import made of its state."""
READS_CODE = re.compile(r"\b(__code__|__closure__|__defaults__|dis|marshal|co_\w+|getsource\w*|getclosurevars)\b")
"""Words of functions that look at code which they do not run. They rely on the files of all modules of the tree."""

UNSEEN = {
    CLOCK: re.compile(r"\b(now|utcnow|today)\("),
    CHANCE: re.compile(r"\b(random|shuffle|choices?|sample|rand\w+)\b"),
    "starts a process": re.compile(r"process|Popen|\bmp\b"),
}
"""What a line has that gives a reason which only the profiler or the state of the generator shows."""


class RecordMaker:
    """Makes records of contexts. The record of a module or a fixture is made once.

    Attributes:
        by_name: The context of each imported module, by the module's name.
        by_path: The context of each imported module, by the name of its path.
        collections: The contexts of collections. Their outcome is state, as that of an import.
    """

    def __init__(self, present: Present, names: PathNames, session: ExecutionContext, ignored: Collection[str]):
        self.by_name: dict[str, ExecutionContext] = {}
        self.by_path: dict[str, ExecutionContext] = {}
        self.collections: list[ExecutionContext] = []
        self._present, self._names, self._session, self._ignored = present, names, session, ignored
        self._made: dict[ExecutionContext, Record] = {}
        self._leads: dict[str, str] = {}
        self._search: dict[str, None] = {}
        self._facts_of = cache(self._versions_of)
        self._state: Record | None = None

    def of(self, context: ExecutionContext) -> tuple[list[Record], str]:
        """Return the records that a finished context depends on, with its own record, and why its result cannot be kept."""
        for folder in sys.path:
            inside = self._names.of(os.path.abspath(folder or "."))
            if inside is not None and not inside.startswith(os.sep):
                self._search.setdefault(inside)
        if context is not self._session:
            context.uses.add(self._session)
        waiting, done = [context], {context}
        while waiting:
            current = waiting.pop()
            if current not in self._made or current is context:
                self._made[current] = self._finished(current)
            new = current.uses - done
            done |= new
            waiting.extend(new)
        shared = [] if context.kind != "test" else [self._shared()]
        why: dict[str, str] = {}
        for known in done:
            for reason in known.volatile.keys() - self._ignored:
                why[reason] = why.get(reason) or known.volatile[reason] or self._place_of(known, reason)
        reasons = (f"{reason} at {place}" if place else reason for reason, place in sorted(why.items()))
        return [*shared, *(self._made[known] for known in done)], "; ".join(reasons)

    def _place_of(self, context: ExecutionContext, reason: str) -> str:
        """Return the first line of what ran in a context that may have given a reason which no frame showed; "" if none may."""
        for file, line, name in sorted(context.codes) if reason in UNSEEN else ():
            path = self._names.of(file) or os.sep
            module = None if path.startswith(os.sep) else self._present.module(path)
            unit = module.function_at(line) if module is not None and name != "<module>" else None
            first, last = (unit.first - 1, unit.last) if unit is not None else (0, None)
            for at, text in enumerate(self._lines(path)[first:last] if module is not None else (), first + 1):
                if UNSEEN[reason].search(text):
                    return f"{path}:{at}"
        return ""

    def _shared(self) -> Record:
        """Return what collections and imports did beyond binding names. It is state, and any test may see it."""
        if self._state is None:
            facts = set[Fact]()
            for context in {*self.by_path.values(), *self.collections}:
                for fact in self._finished(context).facts:
                    if fact.kind in STATE:
                        facts.add(fact)
                    elif fact.kind == "skeleton":
                        facts.add(Fact("effects", fact.name, fact.value))
            self._state = Record("state", "what was collected and imported", frozenset(facts))
        return self._state

    def _finished(self, context: ExecutionContext) -> Record:
        for code in context.codes:
            path, facts = self._facts_of(code)
            if path in self.by_path:
                context.uses.add(self.by_path[path])
            for key, value in facts:
                context.facts.setdefault(key, value)
        for package, name, level, items in context.imports:
            self._resolve(context, package, name, level, items)
        for line, why in context.drawn.items():
            if why not in self._ignored:
                self._note_drawn(context, line, why)
        context.uses.discard(context)
        return Record(context.kind, context.name, frozenset(Fact(*key, value) for key, value in context.facts.items()))

    def _note_drawn(self, context: ExecutionContext, line: int, why: str) -> None:
        """Note the names that a statement gave another value than before. Only code that mentions them can tell."""
        binds = drawn_at("".join(self._lines(context.name)), line)
        if binds:
            context.note("drawn", f"{context.name}::{' '.join(sorted(binds))}", f"{why} at {context.name}:{line}")
        else:
            context.volatile.setdefault(why, f"{context.name}:{line}")

    def _versions_of(self, code: FunctionKey) -> tuple[str | None, list[tuple[tuple[str, str], str]]]:
        """Return the name of the file of a function that ran, and the versions of its body and of its module's skeleton."""
        file, line, name = code
        path = self._names.of(file)
        module = None if path is None or path.startswith(os.sep) else self._present.module(path)
        if path is None or module is None:
            return path, []
        facts = [(("skeleton", path), module.skeleton)]
        if name != "<module>" and (unit := module.function_at(line)):
            facts.append((("body", f"{path}::{unit.name}"), module.bodies[unit.name]))
            if READS_CODE.search("".join(self._lines(path)[unit.first - 1 : unit.last])):
                facts += [(("file", each), self._present.value("file", each)) for each in self.by_path]
        return path, facts

    @cache  # noqa: B019  (a recorder lives as long as its process)
    def _lines(self, path: str) -> list[str]:
        try:
            return (self._present.root / path).read_text("utf-8", "replace").splitlines(keepends=True)
        except OSError:
            return []

    def _resolve(self, context: ExecutionContext, package: str, name: str, level: int, items: tuple[str, ...]) -> None:
        base = package.rsplit(".", level - 1)[0] if level else ""
        whole = ".".join(filter(None, (base, name)))
        parts = whole.split(".")
        names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        names += [inner for item in items if (inner := f"{whole}.{item}") in self.by_name]
        for member in names:
            used = self.by_name.get(member)
            if used is not None:
                context.uses.add(used)
            folders = self._names.folders_of(member.rpartition(".")[0])
            if folders:
                key = f"{member.rpartition('.')[2]} in {':'.join(folders)}"
            elif used is not None or "." not in member or names[0] in self.by_name:
                key = f"{member} in {':'.join(self._search)}"
            else:
                continue
            if key not in self._leads:
                self._leads[key] = self._present.value("name", key)
            context.note("name", key, self._leads[key])
