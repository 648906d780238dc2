"""Makes records of finished contexts. A record has the versions of the code that ran, and the files that imports led to."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from functools import cache

from bench.codebase.calls import FunctionKey
from bench.codebase.naming import PathNames
from bench.codebase.present import Present
from bench.codebase.record import ExecutionContext, Fact, Record


class RecordMaker:
    """Makes records of contexts. The record of a module or a fixture is made once.

    Attributes:
        by_name: The context of each imported module, by the module's name.
        by_path: The context of each imported module, by the name of its path.
    """

    def __init__(self, present: Present, names: PathNames, session: ExecutionContext, ignored: Collection[str]):
        self.by_name: dict[str, ExecutionContext] = {}
        self.by_path: dict[str, ExecutionContext] = {}
        self._present, self._names, self._session, self._ignored = present, names, session, ignored
        self._made: dict[ExecutionContext, Record] = {}
        self._leads: dict[str, str] = {}
        self._search: dict[str, None] = {}
        self._facts_of = cache(self._versions_of)

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
        why = sorted({reason for known in done for reason in known.volatile}.difference(self._ignored))
        return [self._made[known] for known in done], "; ".join(why)

    def _finished(self, context: ExecutionContext) -> Record:
        for code in context.codes:
            path, facts = self._facts_of(code)
            if path in self.by_path:
                context.uses.add(self.by_path[path])
            for key, value in facts:
                context.facts.setdefault(key, value)
        for package, name, level, items in context.imports:
            self._resolve(context, package, name, level, items)
        context.uses.discard(context)
        return Record(context.kind, context.name, frozenset(Fact(*key, value) for key, value in context.facts.items()))

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
        return path, facts

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
