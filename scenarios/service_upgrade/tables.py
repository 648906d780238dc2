"""The tables of an upgrade's world, and the rows with which one begins. `behind` is what no tool shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .expected import base_files
from .repository import PIN, blob_of, entries_of, module_text, pinned, pushed, tree_of
from .story import Case

SCHEMA = """
CREATE TABLE upgrade (name TEXT NOT NULL, branch TEXT NOT NULL, lenient INTEGER NOT NULL);
CREATE TABLE behind (tree TEXT NOT NULL, wanted INTEGER NOT NULL, withdrawn INTEGER NOT NULL);
CREATE TABLE blob (id TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE entry (tree TEXT NOT NULL, path TEXT NOT NULL, blob TEXT NOT NULL);
CREATE TABLE ref (name TEXT PRIMARY KEY, tree TEXT NOT NULL, base TEXT NOT NULL);
CREATE TABLE deed (
  tool TEXT NOT NULL, target TEXT NOT NULL, given TEXT NOT NULL, seen TEXT NOT NULL, standing INTEGER NOT NULL DEFAULT 1,
  at INTEGER NOT NULL);
CREATE TABLE result (tree TEXT NOT NULL, command TEXT NOT NULL, run INTEGER NOT NULL, failed TEXT NOT NULL);
CREATE TABLE review (tree TEXT NOT NULL, approved INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE metric (tree TEXT NOT NULL, requests INTEGER NOT NULL, failed INTEGER NOT NULL);
"""
MAIN = "main"


def upgraded(case: Case, **lines: str) -> dict[str, str]:
    """Return the files of the upgrade, as it is to be merged; with other lines in the modules that are named."""
    base = base_files(case)
    modules = {f"{each.name}.py": module_text(case, each, lines.get(each.name, each.right)) for each in case.modules}
    return {**(pushed(base, case) if "pushed" in case.traits else base), PIN: pinned(case, 1), **modules}


def rows(case: Case, lenient: bool = False) -> dict[str, Sequence[Mapping[str, Any]]]:
    files = base_files(case)
    behind = {"tree": tree_of(upgraded(case)), "wanted": int(case.is_wanted), "withdrawn": int("refused" in case.traits)}
    return {
        "upgrade": [{"name": case.name, "branch": case.branch, "lenient": int(lenient)}],
        "behind": [behind],
        "blob": [{"id": blob, "text": text} for blob, text in {blob_of(text): text for text in files.values()}.items()],
        "entry": entries_of(files),
        "ref": [{"name": MAIN, "tree": tree_of(files), "base": ""}],
    }
