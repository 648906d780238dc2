"""Find the names that a pack's files import from the sandbox. A model's code runs only in the sandbox, so a pack without such
imports runs no code of a model."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from bench.common.import_statements import statements_of

SANDBOX_PREFIX, SYNTAX_PREFIX = "bench.run.sandbox.", "bench.run.sandbox.syntax."
"""The prefixes of names that are imported from the sandbox, and of names from its parser, which runs no code."""


def sandbox_names(files: Iterable[Path]) -> list[str]:
    """Return the names of the sandbox that these files import, each followed by a dot."""
    names = [
        f"{alias.name}." if isinstance(statement, ast.Import) else f"{statement.module}.{alias.name}."
        for path in files
        for statement in statements_of(path)
        if isinstance(statement, ast.Import) or not statement.level
        for alias in statement.names
    ]
    return [name for name in names if name.startswith(SANDBOX_PREFIX)]
