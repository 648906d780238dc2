"""The core's rooms by floor, as a Markdown table, from the imports in its code.

A room is a folder or a module of the package. It stands one floor above the highest room that it imports from. The wings stand
beside them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from itertools import groupby
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "bench"
WINGS = ("codebase", "engine", "exchange", "frameworks", "serve", "studies", "worlds")
NO_ROOMS = ("__init__.py", "__main__.py", "py.typed", "templates", "cl100k_base", "__pycache__")


def page() -> str:
    """A row for each floor, the top one first."""
    uses = imports()
    floor = floors(uses)
    ranked = sorted(uses, key=lambda room: (-floor[room], room))
    rows = [f"| {number} | {_rooms(rooms)} |" for number, rooms in groupby(ranked, floor.__getitem__)]
    return "\n".join(("| floor | rooms |", "| --- | --- |", *rows))


def _rooms(names: Iterator[str]) -> str:
    return ", ".join(f"`{name}{'/' if (PACKAGE / name).is_dir() else '.py'}`" for name in names)


def imports() -> dict[str, set[str]]:
    """Room of the core -> the rooms of the core that it imports from."""
    rooms = {path.stem: path for path in sorted(PACKAGE.iterdir()) if path.name not in (*NO_ROOMS, *WINGS)}
    return {name: {room for file in _files(path) for room in _imported(file)} - {name, *WINGS} for name, path in rooms.items()}


def floors(uses: Mapping[str, set[str]]) -> dict[str, int]:
    """Room -> its floor; raises graphlib.CycleError where two rooms import from each other."""
    floor: dict[str, int] = {}
    for room in TopologicalSorter(uses).static_order():
        floor[room] = max((floor[below] + 1 for below in uses[room]), default=0)
    return floor


def _files(path: Path) -> Iterator[Path]:
    yield from path.rglob("*.py") if path.is_dir() else [path]


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bench."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "bench":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("bench."))
