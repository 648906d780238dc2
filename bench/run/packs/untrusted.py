"""Which parts of a pack use the sandbox: those that import `bench.run.sandbox`. A model's code is run only there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.common.import_statements import Statement, statements_of

SANDBOX, SYNTAX = "bench.run.sandbox.", "bench.run.sandbox.syntax."


def use_sandbox(files: Iterable[Path]) -> bool:
    """Return whether one of these files imports the sandbox, anywhere in the file."""
    return any(_sandboxes(files))


def run_code(files: Iterable[Path]) -> bool:
    """Return whether one of these files runs code in the sandbox: it imports more of it than the parser."""
    return any(not module.startswith(SYNTAX) for module in _sandboxes(files))


def _sandboxes(files: Iterable[Path]) -> Iterator[str]:
    """Yield the imported names of the sandbox, each followed by a dot."""
    modules = (f"{module}." for path in files for statement in statements_of(path) for module in _modules(statement))
    return (module for module in modules if module.startswith(SANDBOX))


def _modules(statement: Statement) -> Iterator[str]:
    names = [alias.name for alias in statement.names]
    if isinstance(statement, ast.Import):
        yield from names
    elif not statement.level:
        yield from (f"{statement.module}.{name}" for name in names)
