"""Code that agents change: what a patch invalidates, and what must run again.

    state = ExecutionState.open(".")
    state.run(["tests"])            # runs what the present code invalidates, and takes the rest from kept results
    state.impact("src/money.py::total")

Each name is imported on first use, so that the pytest plug-in costs nothing in a session that does not ask for it.
PYTEST_DONT_REWRITE: `bench_code.session` imports this package before pytest, which otherwise warns of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_code.edits import Edit
    from bench_code.patches import Patch
    from bench_code.state import ExecutionState

__all__ = ["Edit", "ExecutionState", "Patch"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'bench_code' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415

    home = {"Edit": "edits", "ExecutionState": "state", "Patch": "patches"}[name]
    return getattr(import_module(f"bench_code.{home}"), name)
