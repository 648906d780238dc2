"""Keeps portfolios of artifacts that belong together, and tells which of the artifacts are stale after a patch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from bench_code.git import CodeError
from bench_code.validity import BAD
from bench_code.workspace import Workspace


@dataclass(frozen=True)
class Stale:
    """An artifact of a portfolio that must be looked at again.

    path      the artifact
    because   the artifacts that it needs and that changed since it was last confirmed or made anew
    rerun     its executions whose results do not hold
    """

    path: str
    because: tuple[str, ...]
    rerun: tuple[str, ...]


def declare(state: Workspace, name: str, needs: Mapping[str, Sequence[str]]) -> None:
    """Declare a portfolio, as its artifacts are now.

    Args:
        state: The workspace.
        name: The portfolio's name. An earlier portfolio of this name is replaced.
        needs: For each artifact, a path in the tree, those artifacts of the portfolio that it is made from or writes about.

    Raises:
        CodeError: An artifact does not exist, needs an artifact that is not declared, or needs itself in a circle.
    """
    for path, needed in needs.items():
        if not (state.root / path).is_file():
            raise CodeError(f"portfolio {name}: there is no file {path}")
        for other in needed:
            if other not in needs:
                raise CodeError(f"portfolio {name}: {path} needs {other}, which is not declared; add it")
    _ordered(name, needs)
    rows = [(name, path, json.dumps(_versions(state, [path, *needed]))) for path, needed in needs.items()]
    with state.store.writing():
        state.store.db.execute("DELETE FROM artifacts WHERE portfolio = ?", (name,))
        state.store.db.executemany("INSERT INTO artifacts(portfolio, artifact, needs) VALUES (?, ?, ?)", rows)


def confirm(state: Workspace, name: str, path: str) -> None:
    """Note that somebody looked at an artifact, and that it fits the present versions of the artifacts that it needs.

    Args:
        state: The workspace.
        name: The portfolio's name.
        path: The artifact.

    Raises:
        CodeError: There is no such portfolio, or it does not have the artifact.
    """
    known = _declared(state, name)
    if path not in known:
        raise CodeError(f"portfolio {name} has no artifact {path}; it has {', '.join(sorted(known))}")
    row = (json.dumps(_versions(state, list(known[path]))), name, path)
    with state.store.writing():
        state.store.db.execute("UPDATE artifacts SET needs = ? WHERE portfolio = ? AND artifact = ?", row)


def stale(state: Workspace, name: str) -> list[Stale]:
    """Return the artifacts of a portfolio that are stale in the present tree.

    An artifact with executions is stale if one of them must run again or failed. Any other artifact is stale if it did not
    change since it was declared or confirmed, and something that it needs did.

    Args:
        state: The workspace.
        name: The portfolio's name.

    Returns:
        The stale artifacts. Each stands behind those that it needs.

    Raises:
        CodeError: There is no such portfolio.
    """
    known = _declared(state, name)
    decisions = state.decisions()
    invalid = [name for decision in decisions for name in decision.invalid]
    failed = [name for decision in decisions for name, kept in decision.kept.items() if kept.outcome in BAD]
    every = invalid + [name for decision in decisions for name in decision.kept]
    stale: dict[str, Stale] = {}
    for path in _ordered(name, {path: needed.keys() - {path} for path, needed in known.items()}):
        tests = {test for test in every if test.startswith(f"{path}::") or test == path}
        rerun = tuple(name for name in [*invalid, *failed] if name in tests)
        now = _versions(state, list(known[path]))
        changed = tuple(other for other in now if other != path and now[other] != known[path][other])
        because = () if tests or now[path] != known[path][path] else changed
        if rerun or because:
            stale[path] = Stale(path, because, rerun)
    return list(stale.values())


def _declared(state: Workspace, name: str) -> dict[str, dict[str, str]]:
    rows = state.store.rows("SELECT artifact, needs FROM artifacts WHERE portfolio = ? ORDER BY rowid", name)
    if not rows:
        raise CodeError(f"there is no portfolio '{name}'; declare it first")
    return {artifact: {artifact: "", **state.store.parsed(needs, {str: str})} for artifact, needs in rows}


def _versions(state: Workspace, paths: Sequence[str]) -> dict[str, str]:
    """Return the version of each artifact: the digests of its functions and its skeleton for code, else that of its content."""
    present = state.present()
    versions = {}
    for path in paths:
        module = present.module(path) if path.endswith(".py") else None
        values = (module.skeleton, *(unit.digest for unit in module.units)) if module else (present.value("file", path),)
        versions[path] = " ".join(values)
    return versions


def _ordered(name: str, needs: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the artifacts, each behind those that it needs."""
    try:
        return [*TopologicalSorter(needs).static_order()]
    except CycleError:
        raise CodeError(f"portfolio {name}: its artifacts need each other in a circle") from None
