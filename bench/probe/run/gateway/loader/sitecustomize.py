"""The first module that the agent's Python imports, since its folder is the first in PYTHONPATH. It opens the door of
functions, and then runs another `sitecustomize` if there is one. Standard library only; Python 3.10 and later."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

DOOR_VARIABLE = "BENCH_FUNCTION_DOOR"
LOADER_FOLDER = os.path.dirname(os.path.realpath(__file__))


def _import_from(name: str, path: list[str]) -> None:
    """Import a module from these folders only, if one of them has it."""
    if (spec := PathFinder.find_spec(name, path)) and spec.loader:
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


if DOOR_VARIABLE in os.environ and sys.version_info >= (3, 10):
    _import_from("agent_door", [LOADER_FOLDER])
    sys.modules["agent_door"].open_door(os.environ[DOOR_VARIABLE])
sys.path[:] = [path for path in sys.path if os.path.realpath(path) != LOADER_FOLDER]
_import_from("sitecustomize", sys.path)
