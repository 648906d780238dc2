"""The page on the architecture names files that there are, and its walks definitions that stand in them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<file>[a-z_/]+\.py)` \| (?P<names>(?:`\w+`(?:, )?)+) \|$", re.MULTILINE)
LONGEST = {"From a config to its trials": 25, "From a run's records to a cell of a table": 35}


def defined_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "bench" / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("title", LONGEST)
def test_each_stop_of_a_walk_stands_in_its_file_and_the_walk_is_short(title: str) -> None:
    walk = PAGE.split(f"**{title}**", 1)[1].split("\n\n| file", 1)[1].split("\n\n", 1)[0]
    stops = [(row["file"], name) for row in ROW.finditer(walk) for name in re.findall(r"`(\w+)`", row["names"])]
    missing = [f"{file}: {name}" for file, name in stops if name not in defined_in(file)]
    assert not missing
    assert len(stops) == len(set(stops)) <= LONGEST[title]
    assert f"**{title}**, {len(stops)} stops:" in PAGE


def test_each_file_to_look_into_is_there() -> None:
    section = PAGE.split("## Where to look", 1)[1].split("##", 1)[0]
    files = [file for file in re.findall(r"`([a-z_/]+\.py)`", section) if "NAME" not in file]
    assert len(files) > 20
    missing = [file for file in files if not list((ROOT / "bench").rglob(file))]
    assert not missing
