"""Compares what two versions of a module do, beyond binding names, while they are imported or collected."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import PurePath

from bench_code.mentions import ANY, PLAIN
from bench_code.surface import Surface, TopStatement, readers_of


def acting(surface: Surface, ran: Collection[str] = ()) -> tuple[object, ...]:
    """Return the digests of the statements that do more than bind names, and of those that bind a name that these mention.

    Args:
        surface: A module's statements.
        ran: The module's functions that run while modules are imported, by their qualified names.
    """
    acts = [each for each in surface.statements if each.kind == "other"]
    wanted = {word for each in acts for word in each.mentions}
    if ANY in wanted:
        return tuple((each.digest, each.parts) for each in surface.statements)
    chosen, known = set[str](), -1
    while known < len(chosen):
        known = len(chosen)
        for each in surface.statements:
            if each.kind == "other" or any(PLAIN + name in wanted for name in each.binds):
                chosen.add(each.digest)
                wanted |= each.mentions
    read = [
        (each.digest, *(part for part in each.parts if part[0] in ran or not wanted.isdisjoint(readers_of(part[0]))))
        for each in surface.statements
        if each.digest in chosen
    ]
    return tuple(read)


def same_effects(
    before: Surface | None, after: Surface | None, loads: Callable[[TopStatement], bool], ran: Collection[str] = ()
) -> bool:
    """Return whether two versions of a module do the same while they are imported.

    Args:
        before: The older surface; None if it is not known.
        after: The present surface; None if it is not known.
        loads: Whether an import may load a module that was not loaded before.
        ran: The module's functions that run while modules are imported, by their qualified names.
    """
    if before is None or after is None or acting(before, ran) != acting(after, ran):
        return False
    imports, now = ({each.imports for each in surface.statements if each.kind == "import"} for surface in (before, after))
    return imports <= now and not any(loads(each) for each in after.statements if each.imports in now - imports)


def may_load(statement: TopStatement, loaded: Collection[str], tree: Collection[str]) -> bool:
    """Return whether an import may lead to a file of the tree that is not loaded.

    Args:
        statement: The import.
        loaded: The paths of the modules that were loaded.
        tree: The paths of all Python files of the tree.
    """
    module, _, name = statement.imports.partition(" ")
    last = {module.rpartition(".")[2], name} - {""}
    names = {
        PurePath(path).parent.name if path.endswith("/__init__.py") else PurePath(path).stem for path in {*tree} - {*loaded}
    }
    return bool(last & names) or name == "*"
