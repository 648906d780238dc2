"""Find the parts of a pack that use the sandbox: those that import `bench.run.sandbox`. A model's code is run only there."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from bench.common.import_statements import statements_of

SANDBOX, SYNTAX = "bench.run.sandbox.", "bench.run.sandbox.syntax."
"""How the imported names of the sandbox begin, and those of its parser, which runs nothing."""


def sandbox_names(files: Iterable[Path]) -> list[str]:
    """Return the names of the sandbox that these files import, each followed by a dot."""
    names = [
        f"{alias.name}." if isinstance(statement, ast.Import) else f"{statement.module}.{alias.name}."
        for path in files
        for statement in statements_of(path)
        if isinstance(statement, ast.Import) or not statement.level
        for alias in statement.names
    ]
    return [name for name in names if name.startswith(SANDBOX)]
