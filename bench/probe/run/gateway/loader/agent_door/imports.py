"""Wraps functions when their modules are imported: the functions that the owner names, and the places of frameworks.

A function of a Python module is wrapped where it is defined, inside its other decorators, so that every reference to it is
wrapped. This also holds for the script that is run: the interpreter is made to import it as a module.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
from typing import Any

from .calls import AnyCallable, arguments_of, wrap_function
from .door import Door
from .frameworks import ToolPlace

MAIN_NAMES = ("__main__", "__mp_main__")
HOOK_EXPRESSION = f"__import__('sys').modules[{__package__!r}].hook"


class ImportHook:
    """A finder in front of all others, for modules and for scripts.

    Args:
        door: Asks the gateway.
        functions: `MODULE:FUNCTION` that the owner names -> the name of its tool. The module of a script is `__main__`, or
            the name of its file.
        places: The places where frameworks execute tools.
    """

    def __init__(self, door: Door, functions: Mapping[str, str], places: Sequence[ToolPlace]):
        self._door, self._places = door, places
        self._tools_by_module = dict[str, dict[str, str]]()
        for name, tool in functions.items():
            module, _, path = name.partition(":")
            self._tools_by_module.setdefault(module, {})[path] = tool
        self._wrapped_tools = set[str]()
        """The tools of named functions that are wrapped."""

    def install(self) -> None:
        """Wrap functions of modules that are imported from now on, and of modules that are already imported."""
        self._door.tell({"hello": f"Python {sys.version.split()[0]}"})
        sys.meta_path.insert(0, self)
        sys.path_hooks.insert(0, self._find_script)
        for name in list(sys.modules):
            if name not in MAIN_NAMES and self._has_functions(name):
                self._wrap_module(sys.modules[name])

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module with functions to wrap; None for other modules, which the other finders find."""
        for finder in sys.meta_path if self._has_functions(name) else ():
            find = getattr(finder, "find_spec", None)
            if finder is not self and find and (spec := find(name, path, target)):
                return self._wrapping_spec(spec)
        return None

    def decorator_of(self, tool: str) -> Callable[[AnyCallable], AnyCallable]:
        """Return the decorator of a named function."""

        def decorate(function: AnyCallable) -> AnyCallable:
            self._wrapped_tools.add(tool)
            return wrap_function(self._door, function, lambda args, kwargs: (tool, arguments_of(function, args, kwargs)))

        return decorate

    def become_script(self, names: dict[str, Any]) -> None:
        """Give a module the global names of a script, before its code runs."""
        file = names["__file__"]
        names.update(__spec__=None, __package__=None, __cached__=None)
        if sys.path[:1] == [file]:
            folder = [] if getattr(sys.flags, "safe_path", False) else [os.path.dirname(os.path.realpath(file))]
            sys.path[:1] = folder if names["__name__"] == "__main__" else []

    def _has_functions(self, module: str) -> bool:
        """Return whether a module has functions to wrap."""
        return any(place.module == module for place in self._places) or bool(self._tools_of(module))

    def _tools_of(self, module: str, script: str = "") -> dict[str, str]:
        """Return path of each named function in a module, such as `Class.method` -> its tool."""
        names = {module}
        if module in MAIN_NAMES:
            names |= {*MAIN_NAMES, os.path.basename(script or sys.argv[0]).removesuffix(".py")}
        elif ("-m", module) in zip(sys.orig_argv, sys.orig_argv[1:]):  # noqa: B905  shorter than what Python 3.10 has
            names |= {*MAIN_NAMES}
        return {path: tool for name in names for path, tool in self._tools_by_module.get(name, {}).items()}

    def _find_script(self, path: str) -> ScriptFinder:
        """Return a finder for a script, as `sys.path_hooks` requires."""
        if path.endswith(".py") and os.path.isfile(path) and self._tools_of("__main__", path):
            return ScriptFinder(path)
        raise ImportError(path)

    def _wrapping_spec(self, spec: ModuleSpec) -> ModuleSpec:
        """Return a spec that wraps the module's functions when the module is executed."""
        loader: Any = spec.loader
        if isinstance(loader, SourceFileLoader) and self._tools_of(spec.name):
            loader.get_code = partial(self._code_of, loader)  # type: ignore[method-assign]
        execute = getattr(loader, "exec_module", None)
        if execute and not isinstance(loader, type):

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._wrap_module(module)

            loader.exec_module = exec_module
        return spec

    def _code_of(self, loader: SourceFileLoader, name: str) -> CodeType:
        """Return a module's code with a decorator on each named function."""
        file = loader.get_filename(name)
        tree = ast.parse(loader.get_data(file), file)
        tools = self._tools_of(name, file)
        wrapped = set[str]()
        for path, tool in tools.items():
            for node in _definitions_at(tree.body, path.split(".")):
                _decorate(node, tool)
                wrapped.add(path)
        if name in MAIN_NAMES:
            for path in tools.keys() - wrapped:
                self._report_unwrappable(
                    f"{os.path.basename(file)} defines no function {path}; name the module that defines it"
                )
            position = len(_leading_statements(tree.body))
            tree.body[position:position] = ast.parse(f"{HOOK_EXPRESSION}.become_script(globals())").body
        return compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)

    def _wrap_module(self, module: ModuleType) -> None:
        """Wrap the places of frameworks in a module, and its named functions that are not wrapped yet."""
        for place in self._places:
            if place.module == module.__name__:
                try:
                    place.wrap(module, partial(wrap_function, self._door))
                    self._door.tell({"seen": "framework", "what": place.tried.split()[0]})
                except (AttributeError, TypeError) as error:
                    problem = f"the tools of {place.module} are not seen: this version of it is not known ({error})"
                    self._door.tell({"notice": problem})
        for path, tool in self._tools_of(module.__name__).items():
            if tool not in self._wrapped_tools:
                self._replace(module, path, tool)

    def _replace(self, module: ModuleType, path: str, tool: str) -> None:
        """Wrap a function that its module does not define itself, or that has no source."""
        *owners, name = path.split(".")
        owner: Any = module
        for owner_name in owners:
            owner = getattr(owner, owner_name, None)
        function = inspect.getattr_static(owner, name, None)
        if function is None:
            self._report_unwrappable(f"{module.__name__} has no {path}, which `functions` names")
        elif callable(function) and not isinstance(function, type):
            setattr(owner, name, self.decorator_of(tool)(function))
        else:
            self._report_unwrappable(
                f"{module.__name__}:{path} is no function but a {type(function).__name__}; name a function"
            )

    def _report_unwrappable(self, what: str) -> None:
        """Report a function that cannot be wrapped."""
        self._door.tell({"refused": what})


class ScriptFinder:
    """Finds the script at a path as the module `__main__`."""

    def __init__(self, path: str):
        self._path = path

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002  as finders are called
        """Return the script's spec; None for any other module."""
        if name != "__main__":
            return None
        return spec_from_file_location(name, self._path, loader=SourceFileLoader(name, self._path))


def _definitions_at(body: Sequence[ast.stmt], path: Sequence[str]) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the definitions of a function at a path of names, such as a class and its method."""
    nodes = list[ast.FunctionDef | ast.AsyncFunctionDef]()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == path[0] and len(path) > 1:
                nodes += _definitions_at(node.body, path[1:])
            elif node.name == path[0] and not isinstance(node, ast.ClassDef):
                nodes.append(node)
        else:  # such as `if` and `try`
            for block in ("body", "orelse", "finalbody"):
                nodes += _definitions_at(getattr(node, block, ()), path)
            for handler in getattr(node, "handlers", ()):
                nodes += _definitions_at(handler.body, path)
    return nodes


def _decorate(node: ast.FunctionDef | ast.AsyncFunctionDef, tool: str) -> None:
    """Add the decorator that wraps a tool's function to the function's definition."""
    decorator = ast.parse(f"{HOOK_EXPRESSION}.decorator_of({tool!r})", mode="eval").body
    for part in ast.walk(decorator):
        ast.copy_location(part, node)
    node.decorator_list.append(decorator)


def _leading_statements(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that must remain first: the docstring, and imports from `__future__`."""
    leading = []
    for index, node in enumerate(body):
        is_docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        leading.append(node)
    return leading
