"""Which edits of an open package are judged, what of them is lost, and how lost edits are counted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from impact.kinds import edits_of_kinds
from impact.mutants import Mutant, mutants
from impact.packages import Package
from impact.report import day_of, kind_of, limit, report, results
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


def test_six_of_ten_edits_are_of_bodies_and_the_others_take_turns(tmp_path: Path) -> None:
    edits = list(edits_of_kinds(_tree(tmp_path), PACKAGE, seed=1))
    kinds = [edit.what.partition(":")[0] for edit in edits]
    assert len(edits) >= 10 and kinds[:10].count("body") == 6
    others = [kind for kind in kinds if kind != "body"]
    assert len({*others[:4]}) == 4, "no kind comes twice before the others came"
    for edit in edits:
        assert not edit.path.endswith(".py") or ast.parse(edit.content)
        assert not (tmp_path / edit.path).exists() or (tmp_path / edit.path).read_text() != edit.content


def test_only_the_inside_of_a_function_is_a_body(tmp_path: Path) -> None:
    root = _tree(tmp_path)
    for edit in mutants(root, "shop", 1):
        before, after = (_without_bodies(text) for text in ((root / edit.path).read_text(), edit.content))
        assert (before == after) == edit.is_body, edit.what


def _without_bodies(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = [ast.Pass()]
    return ast.dump(tree)


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


def _row(
    what: str, ran: int = 1, lost: int = 0, seconds: float = 3.0, package: str = "shop-1", changed: int = 1
) -> dict[str, str]:
    counts = {"tests": 4, "changed": changed, "bench lost": lost, "bench ran": ran, "bench wrong": 0, "bench s": seconds}
    others = {"testmon lost": 1, "testmon ran": 1, "testmon wrong": 1, "testmon s": 3}
    values = {"package": package, "edit": what, "plain s": 6, **counts, **others}
    return {key: str(value) for key, value in values.items()}


ROWS = [
    _row("first: nothing is recorded yet", ran=4, seconds=12, changed=0),
    _row("nothing: nothing changed", ran=0, seconds=1.5, changed=0),
    _row("shop/till.py:1 body: x -> y: z"),
    _row("shop/till.py:2 default: 1 -> 2", ran=4, seconds=9),
    _row("tests/t.py:2 test added: t.py", changed=0),
]


def test_an_edit_is_lost_once_and_the_bound_counts_packages_that_kept_something() -> None:
    judged, ours, theirs, *_ = results([*ROWS, *({**row, "package": "store-1"} for row in ROWS)])
    assert "lost a result after 0 of 4 edits that changed a result, of 6 edits of 2 packages." in ours
    assert (
        f"After 2 of the 4 edits `bench code` kept some results (in 0 of 2 packages, so in at most {limit(2)} of such" in ours
    )
    assert "lost a result after 4 of 4" in theirs and "After 6 of the 6 edits a test that ran had another outcome" in theirs
    assert (
        "6 edits of 2 packages. `bench code` could lose a result after 2 of these edits, in 2 packages: after the other edits"
        in judged
    )
    assert [limit(count) for count in (1, 10)] == ["95%", "26%"]


def test_what_was_not_measured_is_left_out_and_a_number_of_its_own_has_no_range() -> None:
    alone = [_row("shop/till.py:2 default: 1 -> 2", ran=4), _row("first: nothing is recorded yet", ran=4)]
    judged, ours, theirs, costs, _ = results(alone)  # no day
    assert judged.startswith(
        "`bench code` was tested with 1 edit of 1 package. `bench code` could lose a result after 0 of these edits: "
    )
    assert "After 0 of the 1 edits `bench code` kept some results. After" in ours and "packages at 95%" not in ours + theirs
    assert costs.endswith("the first session 0.50 (1 session), a session after another edit 0.50 (1 session).")
    assert results([{**row, "plain s": "1"} for row in alone]) == [judged, ours, theirs]
    assert "| 0 | - | - | - | 0.50 (1) | - | - |" in report(alone[1:])


@pytest.mark.parametrize(("packages", "is_little"), [(9, True), (10, False)])
def test_few_packages_are_said_to_show_next_to_nothing(packages: int, is_little: bool) -> None:
    judged, *_ = results([{**row, "package": f"shop-{number}"} for row in ROWS for number in range(packages)])
    assert ("next to nothing" in judged) == is_little


def test_costs_are_told_of_long_suites_alone_and_of_all_tests() -> None:
    short = [{**row, "package": "small-1", "plain s": "1"} for row in ROWS]
    *_, ours, _, days = results([*ROWS, *short])
    first, nothing, body = "2.00 (1 session)", "0.25 (1 session)", "0.50 (1 session)"
    taken = "`bench code` took, as a multiple of the time of all tests"
    assert f"In the 1 suite whose tests take 5 seconds or more, {taken}: the first session {first}" in ours
    assert f"nothing changed {nothing}" in ours and f"after a body edit {body}" in ours
    assert day_of(ROWS) == pytest.approx((2 + 18 * 0.5 + 12 * (1.5 + 0.5) / 2) / 30)
    assert "0.77 in shop-1" in days and "small" not in days
    assert day_of(ROWS[:2]) is None


def test_an_edit_after_which_nothing_is_collected_counts_for_no_time() -> None:
    nothing = {**ROWS[2], "tests": "0", "bench ran": "0", "plain s": "0.1"}
    assert [each for each in results([*ROWS, nothing]) if "multiple" in each] == [
        each for each in results(ROWS) if "multiple" in each
    ]


def test_the_report_has_a_row_for_each_package() -> None:
    assert "| shop-1 | 4 | 6.0 | 3 | 2 | 0 | 50% | 2.00 (1) | 0.25 (1) | 0.50 (1) |" in report(ROWS)


def test_a_row_without_a_selector_counts_for_the_other_alone() -> None:
    alone = [{key: value for key, value in row.items() if not key.startswith("testmon")} for row in ROWS[2:]]
    _, ours, theirs, *_ = results([*ROWS[:3], *alone])
    assert "of 4 edits of 1 package" in ours and "of 1 edit of 1 package" in theirs


def test_the_kind_of_an_edit_is_told_by_its_description() -> None:
    assert [kind_of(row) for row in ROWS] == ["first", "nothing", "body", "default", "test added"]
