"""The first module that the agent's Python imports, since its folder leads PYTHONPATH: it opens the door of functions, and
then runs another `sitecustomize` if there is one. Standard library only; Python 3.10 and later."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

VARIABLE = "BENCH_FUNCTION_DOOR"
FOLDER = os.path.dirname(os.path.realpath(__file__))


def _import_from(name: str, path: list[str]) -> None:
    """Import a module from this path only, if it is there."""
    if (spec := PathFinder.find_spec(name, path)) and spec.loader:
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


if VARIABLE in os.environ and sys.version_info >= (3, 10):
    _import_from("agent_door", [FOLDER])
    sys.modules["agent_door"].open_door(os.environ[VARIABLE])
sys.path[:] = [path for path in sys.path if os.path.realpath(path) != FOLDER]
_import_from("sitecustomize", sys.path)
