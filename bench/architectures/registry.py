"""The architectures by name: adding one is one file and one line here. Others load by import path, `module:function`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Coroutine
from typing import Any

from bench.errors import ConfigError, nearest
from bench.runtime.workbench import Workbench
from bench.scenario import Task

Architecture = Callable[[Task, Workbench], Coroutine[Any, Any, None]]
"""Works on a task at a workbench until the state holds an output of every subtask. Raises GaveUp through the workbench."""

ARCHITECTURES = {
    "monolithic": "bench.architectures.monolithic:monolithic",
    "static": "bench.architectures.static:static",
    "runtime_structured": "bench.architectures.runtime_structured:runtime_structured",
}


def load_architecture(name: str) -> Architecture:
    """The architecture of this name or import path. Raises ConfigError where there is none."""
    path = ARCHITECTURES.get(name, name)
    module, _, function = path.partition(":")
    if not function:
        raise ConfigError(f"unknown architecture '{name}'; {nearest(name, ARCHITECTURES)}")
    try:
        loaded: Architecture = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"architecture '{name}' cannot be imported: {error}") from error
    return loaded
