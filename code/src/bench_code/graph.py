"""Builds the static graph of a tree's code: which functions and modules refer to which. It is used for code that never ran.

`ast` gives the definitions, and `symtable` gives the names that a function takes from outside. A name refers to each definition
of that name in the same file, or in a module that the file imports. An attribute refers to each method or function of its name
there. So the graph has too many references rather than too few.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench_code.units import Function, parse, tree_of


@dataclass(frozen=True)
class Names:
    """The names that a function refers to, or the code of a module outside of all functions.

    free         names that it takes from its module
    attributes   names after a dot
    imports      modules that it imports, by their dotted names
    """

    free: frozenset[str]
    attributes: frozenset[str]
    imports: frozenset[str]


def names_in(source: str, path: str) -> dict[str, Names]:
    """Return the names that each function of a file refers to, by its qualified name; "" is the code outside of functions."""
    tree = tree_of(source)
    module = parse(source.encode())
    globals_ = dict(_tables(symtable.symtable(source, path, "exec")))
    lookups: dict[str, list[set[str]]] = {"": [set(), set(), set()]}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        unit = module.function_at(line)
        free, attributes, imports = lookups.setdefault(unit.name if unit else "", [set(), set(), set()])
        if isinstance(node, Function) and unit is not None:
            free |= globals_.get((node.name, node.lineno), set())
        elif isinstance(node, ast.Name) and unit is None:
            free.add(node.id)
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports |= {f"{'.' * node.level}{node.module or ''}"} | {
                f"{node.module or ''}.{alias.name}" for alias in node.names
            }
    return {name: Names(*map(frozenset, three)) for name, three in lookups.items()}


def _tables(table: symtable.SymbolTable) -> Iterator[tuple[tuple[str, int], set[str]]]:
    """Yield each function of a symbol table with its global names, and with those of the functions inside it."""
    for child in table.get_children():
        inner = dict(_tables(child))
        yield from inner.items()
        if isinstance(child, symtable.Function):
            taken = {symbol.get_name() for symbol in child.get_symbols() if symbol.is_global()}
            yield (child.get_name(), child.get_lineno()), taken.union(*inner.values())


def users_of(files: Mapping[str, str], artifact: str) -> list[str]:
    """Return the artifacts that refer to an artifact, directly or through others.

    Args:
        files: The text of each Python file by its path.
        artifact: `path::function`, `path::Class` or a path.

    Returns:
        The artifacts, sorted: `path::function`, or a path for code outside of functions.
    """
    graph: dict[str, Names] = {}
    for path, text in files.items():
        try:
            graph |= {f"{path}::{name}" if name else path: names for name, names in names_in(text, path).items()}
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # a file that does not parse refers to nothing that could run
    reached, waiting = {artifact}, [artifact]
    while waiting:
        target = waiting.pop()
        path, _, inner = target.partition("::")
        last = inner.rpartition(".")[2]
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".").rpartition(".")[2]
        for user, names in graph.items():
            is_own = user.partition("::")[0] == path
            knows = is_own or any(module in name.split(".") for name in graph[user.partition("::")[0]].imports | names.imports)
            named = (last in names.attributes or last in names.free) if last else (knows and not is_own)
            if user not in reached and knows and named:
                reached.add(user)
                waiting.append(user)
    return sorted(reached - {artifact})
