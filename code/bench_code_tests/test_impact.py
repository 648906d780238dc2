"""Which edits of an open package are judged, what of them is lost, and how lost edits are counted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from impact.kinds import edits_of_kinds
from impact.mutants import Mutant
from impact.packages import Package
from impact.rows import changing, kind_of, limit, lossy
from impact.sentences import results
from impact.trial import PLAIN, Outcome, Session, Suite, compare

SHOP = """
'''Sells things.'''
from .till import paid, owed
LIMIT = 3
PRICES = {"tea": 2}
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
PACKAGE = Package("shop", "1", "shop")
EDIT = Mutant("shop/till.py", 1, "operator: x -> y", "")


def _tree(root: Path) -> Path:
    for name, text in {
        "shop/__init__.py": SHOP,
        "shop/till.py": "def paid(x): return x\ndef owed(x): return x\n",
        "tests/test_shop.py": "def test_shop(): assert 1\n",
        "tests/helper.py": "SIZE = 1\n",
        "tests/data/words.txt": "some words\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_edits_of_all_kinds_take_turns_and_parse(tmp_path: Path) -> None:
    edits = list(edits_of_kinds(_tree(tmp_path), PACKAGE, seed=1))
    kinds = [edit.what.partition(":")[0] for edit in edits]
    first = kinds[: len({*kinds})]
    assert len({*first}) == len(first) == 25
    for edit in edits:
        assert not edit.path.endswith(".py") or ast.parse(edit.content)
        assert not (tmp_path / edit.path).exists() or (tmp_path / edit.path).read_text() != edit.content


def test_the_same_seed_draws_the_same_edits(tmp_path: Path) -> None:
    root = _tree(tmp_path)
    assert [*edits_of_kinds(root, PACKAGE, seed=2)] == [*edits_of_kinds(root, PACKAGE, seed=2)]


class Told(Suite):
    """A suite whose sessions are given."""

    def __init__(self, after: list[dict[str, str]], session: Session):
        super().__init__(PACKAGE, Path("shop"))
        self.after, self.of_selector = after, session

    def session(self, selector: str, edit: Mutant | None, number: int = 0) -> Session | None:
        if selector != PLAIN:
            return self.of_selector
        table = {"a": "passed", "b": "passed", "c": "passed"} if edit is None else self.after[1 if number == 2 else 0]
        return Session(table, {}, 1.0, 1.0)


AFTER = {"a": "failed", "b": "failed", "c": "passed"}


@pytest.mark.parametrize(
    ("ran", "kept", "after", "expected"),
    [
        pytest.param(
            {"a": "failed"}, {"b": "passed", "c": "passed"}, AFTER, Outcome(3, 2, 1, 0, 1), id="it kept an old result"
        ),
        pytest.param({"a": "passed", "b": "failed"}, {}, AFTER, Outcome(3, 2, 1, 1, 2), id="a test ran to its old result"),
        pytest.param({"a": "failed", "b": "failed"}, {"c": "passed"}, AFTER, Outcome(3, 2, 0, 0, 2), id="nothing is lost"),
        pytest.param({"a": "failed"}, {"b": "passed"}, {"a": "failed", "c": "passed"}, Outcome(2, 2, 1, 0, 1), id="it is gone"),
    ],
)
def test_a_result_is_lost_if_the_session_still_says_the_old_one(
    ran: dict[str, str], kept: dict[str, str], after: dict[str, str], expected: Outcome
) -> None:
    assert compare(Told([after, after], Session(ran, kept, 1.0, 1.0)), "bench", EDIT) == expected


def test_a_test_that_differs_between_two_plain_runs_of_an_edited_tree_is_left_out() -> None:
    session = Session({"a": "failed"}, {"b": "passed", "c": "passed"}, 1.0, 1.0)
    assert compare(Told([AFTER, AFTER | {"b": "passed"}], session), "bench", EDIT) == Outcome(2, 1, 0, 0, 1)


def test_testmon_leaves_its_user_with_the_earlier_result_of_a_test_that_did_not_run() -> None:
    assert compare(Told([AFTER, AFTER], Session({"a": "failed"}, {}, 1.0, 1.0)), "testmon", EDIT) == Outcome(3, 2, 1, 0, 1)


SECONDS = {"bench s": "3", "testmon s": "1"}


def _rows(lost: list[int]) -> list[dict[str, str]]:
    keys = ("tests", "changed", *(f"{name} {key}" for name in ("bench", "testmon") for key in ("ran", "wrong")))
    return [
        dict.fromkeys(keys, "1") | {"package": "shop-1", "bench lost": str(each), "testmon lost": "0"} | SECONDS
        for each in lost
    ]


def test_an_edit_that_lost_a_hundred_results_counts_once() -> None:
    rows = _rows([100, 0, 3])
    rows[2]["changed"] = "0"
    assert lossy(rows, "bench") == 2
    assert len(changing(rows)) == 2
    rows[2] |= {"changed": "1", "tests": "0"}
    assert len(changing(rows)) == 2, "where no test is left, none can be lost"


def test_the_limit_counts_edits_of_one_package_as_one_where_all_agree() -> None:
    none = [{**row, "package": f"shop-{place % 12}"} for place, row in enumerate(_rows([0] * 48))]
    assert limit(none, "bench") == f"{100 * (1 - 0.05 ** (1 / 12)):.1f}%"
    alone = [{**row, "package": f"shop-{place}"} for place, row in enumerate(_rows([0] * 100))]
    assert limit(alone, "bench") == "3.0%"


def test_times_are_told_as_the_least_of_all_rounds() -> None:
    about = dict.fromkeys(("unsteady", "tests", "left out", "differ"), "0")
    about |= {"package": "shop-1", "plain s": "2", "first s": "5"}
    times = {"plain": "6 5", "first": "20 10", "nothing": "1 2", "shop/a.py:3 1 -> 2": "9 3"}
    rows = [{"package": "shop-1", "what": what, "s": taken} for what, taken in times.items()]
    *_, costs, bodies, others = results({"edits": _rows([0]), "suites": [about], "times": rows})
    assert "took 1.50 times the processor seconds of all tests in the median, of pytest-testmon 0.50 times" in costs
    assert "a session took 0.60 times as long as all tests (median 0.60): at most 0.6 times after 1 of 1 edits" in bodies
    assert "a session took 1.00 seconds" in others
    assert "took 2.00 times a plain run (1 suites, whose tests take 5.00 seconds)" in others


def test_the_kind_of_an_edit_is_told_by_its_description() -> None:
    assert kind_of({"edit": "a/b.py:7 data file: if -> iff"}) == "data file"
