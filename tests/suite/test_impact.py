"""Which edits of an open package are judged, and how those that lost a result are counted."""

from __future__ import annotations

import ast
from pathlib import Path

from impact.kinds import edits_of_kinds
from impact.rows import kind_of, limit, lossy

SHOP = """
'''Sells things.'''
from .till import paid, owed
LIMIT = 3
class Stack(ValueError):
    SIZE = 2
    def put(self, x, at=0):
        self.x = x
        self.at = at
        return len([x])
    @property
    def top(self): return self.x
def total(x): return x + 1
"""


def _tree(root: Path) -> Path:
    for name, text in {
        "shop/__init__.py": SHOP,
        "shop/till.py": "def paid(x): return x\ndef owed(x): return x\n",
        "tests/test_shop.py": "def test_shop(): assert 1\n",
        "tests/data/words.txt": "some words\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_edits_of_all_kinds_take_turns_and_parse(tmp_path: Path) -> None:
    edits = list(edits_of_kinds(_tree(tmp_path), "shop", "tests", seed=1))
    kinds = [edit.what.partition(":")[0] for edit in edits]
    first = kinds[: len({*kinds})]
    assert len({*first}) == len(first) == 19
    for edit in edits:
        assert not edit.path.endswith(".py") or ast.parse(edit.content)
        assert not (tmp_path / edit.path).exists() or (tmp_path / edit.path).read_text() != edit.content


def test_the_same_seed_draws_the_same_edits(tmp_path: Path) -> None:
    root = _tree(tmp_path)
    assert [*edits_of_kinds(root, "shop", "tests", seed=2)] == [*edits_of_kinds(root, "shop", "tests", seed=2)]


def test_an_edit_that_lost_a_hundred_results_counts_once() -> None:
    rows = [
        {"selector": "bench", "missed": "100"},
        {"selector": "bench", "missed": "0"},
        {"selector": "testmon", "missed": "3"},
    ]
    assert lossy(rows, "bench") == 1
    assert limit(0, 100) == "3.0%"


def test_the_kind_of_an_edit_is_told_by_its_description() -> None:
    assert kind_of({"mutant": "a/b.py:7 data file: if -> iff"}) == "data file"
