"""The tables of a case's world, and their first rows. No tool shows the table `behind`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .database import holding
from .repository import blob_of, entries_of, tree_of
from .story import Case
from .trees import refs_of, upgraded

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
CREATE TABLE production (database TEXT NOT NULL);
CREATE TABLE metric (tree TEXT NOT NULL, requests INTEGER NOT NULL, failed INTEGER NOT NULL);
"""


def rows(case: Case, lenient: bool = False) -> dict[str, Sequence[Mapping[str, Any]]]:
    refs = refs_of(case)
    trees = list({tree_of(files): files for files, _ in refs.values()}.values())
    texts = {blob_of(text): text for files in trees for text in files.values()}
    in_use = holding(case.production)
    texts[blob_of(in_use)] = in_use
    behind = {"tree": tree_of(upgraded(case)), "wanted": int(case.is_wanted), "withdrawn": int("refused" in case.traits)}
    return {
        "upgrade": [{"name": case.name, "branch": case.branch, "lenient": int(lenient)}],
        "behind": [behind],
        "blob": [{"id": blob, "text": text} for blob, text in texts.items()],
        "production": [{"database": blob_of(in_use)}],
        "entry": [row for files in trees for row in entries_of(files)],
        "ref": [
            {"name": name, "tree": tree_of(files), "base": tree_of(base) if base is not None else ""}
            for name, (files, base) in refs.items()
        ],
    }
