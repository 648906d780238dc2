"""Which parts of a pack run code that a model wrote: those that import `bench.sandbox`, by which alone such code is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.packs.imports import Statement, statements_of

SANDBOX = "bench.sandbox"


def run_code(files: Iterable[Path]) -> bool:
    """Whether one of these files imports the sandbox, wherever in it the import stands."""
    modules = (module for path in files for statement in _statements(path) for module in _modules(statement))
    return any(f"{module}.".startswith(f"{SANDBOX}.") for module in modules)


def _statements(path: Path) -> tuple[Statement, ...]:
    try:
        return statements_of(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()  # it is never imported, or the pack would not load


def _modules(statement: Statement) -> Iterator[str]:
    names = [alias.name for alias in statement.names]
    if isinstance(statement, ast.Import):
        yield from names
    elif not statement.level:
        yield from (f"{statement.module}.{name}" for name in names)
