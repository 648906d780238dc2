"""The service's answers before the upgrade, and the tests that check them. All code that runs here is the pack's own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from .repository import CONTRACT, FilesOf, library, main_files, module_text
from .story import Case, Module

UNKNOWN = 99
"""The number of no order."""
TESTED = (1, 2)
"""The orders that the tests of a module ask for."""


@cache
def base_files(case: Case) -> FilesOf:
    """Return the files of main at the start of the upgrade, including tests."""
    tests = {f"tests/test_{module.name}.py": _tests(case, module) for module in case.modules}
    orders = (*(row["id"] for row in case.orders), UNKNOWN)
    contract = [[f"/{module.name}/{order}", answer(case, module, order)] for module in case.modules for order in orders]
    return {**main_files(case), **tests, CONTRACT: json.dumps(contract, indent=0) + "\n"}


def answer(case: Case, module: Module, order: Any) -> Any:
    """Return the answer of a module with the present library; None if there is no such order."""
    text = module_text(case, module, module.old)
    return evaluated(text, case.library, library(case, 0), case.orders, order)


def evaluated(text: str, name: str, library_text: str, rows: Iterable[Mapping[str, Any]], order: Any) -> Any:
    """Return the answer of a module with this text. `name` and `library_text` describe the library that the module imports."""
    offered: dict[str, Any] = {}
    exec(library_text, offered)
    space: dict[str, Any] = {name: SimpleNamespace(**offered)}
    exec(text.replace(f"import {name}\n", ""), space)
    return space["answer"]([dict(row) for row in rows], order)


def _tests(case: Case, module: Module) -> str:
    tests = [
        f"def test_order_{order}():\n    assert {module.name}.answer(ROWS, {order}) == {answer(case, module, order)!r}\n"
        for order in TESTED
    ]
    return "\n\n".join([f"import {module.name}\nfrom orders import ROWS\n", *tests])
