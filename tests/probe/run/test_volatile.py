"""What differs between clean runs is left out of comparisons, and nothing else is."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bench.probe.run.volatile import Masks, Varying, masks_of, place_of, varying_of
from bench.record.probe_events import GatewayCall
from bench.record.probe_rows import RowDifference

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def call(tool: str = "pay", door: str = "shop") -> GatewayCall:
    return GatewayCall(1, "", door, "http", tool, "unseen", None, "", None, 1, "", 0.0, 0.0, 0.0, 0.0)


def masks(*runs: list[JsonValue], tool: str = "pay") -> Masks:
    return masks_of([[(call(tool), arguments) for arguments in run] for run in runs])


def row(key: str, table: str = "payments", **cells: str | int) -> RowDifference:
    return RowDifference("shop", table, key, None, cells)


def rows(*held: RowDifference) -> dict[tuple[str, str, str], RowDifference]:
    return {place_of(row): row for row in held}


def test_a_path_with_an_id_that_varies_has_one_name_in_each_probe() -> None:
    text: JsonValue = {"text": "x"}
    known = masks_of([[(call(f"POST /tickets/T-{made}/notes"), text)] for made in ("2befc713", "90aa12ef")])
    assert known.tool("shop", "POST /tickets/T-77/notes") == "POST /tickets/*/notes"
    assert [known.tool("shop", tool) for tool in ("POST /tickets", "pay")] == ["POST /tickets", "pay"]


@given(VALUES, VALUES)
def test_calls_that_differ_by_what_varied_are_the_same_call(early: JsonValue, late: JsonValue) -> None:
    known = masks([early], [late])
    assert known.identity("shop", "pay", early) == known.identity("shop", "pay", late)


@given(VALUES, VALUES)
def test_calls_are_told_apart_by_all_that_never_varied(early: JsonValue, late: JsonValue) -> None:
    same = Masks().identity("shop", "pay", early) == Masks().identity("shop", "pay", late)
    assert same == (json.dumps(early, sort_keys=True) == json.dumps(late, sort_keys=True))


def test_only_the_part_that_varies_is_masked() -> None:
    known = masks(
        [{"id": "a1", "amount": 30}, {"id": "a2", "amount": 20}], [{"id": "b7", "amount": 20}, {"id": "b8", "amount": 30}]
    )
    assert known.names == ["shop.pay: id"]
    thirty = {known.identity("shop", "pay", {"id": name, "amount": 30}) for name in ("x", "y")}
    assert len(thirty) == 1
    assert known.identity("shop", "pay", {"id": "x", "amount": 20}) not in thirty


def test_a_date_in_a_text_is_masked_and_its_words_are_not() -> None:
    known = masks([{"text": "paid on 2026-01-02: 5 pens"}], [{"text": "paid on 2026-01-03: 5 pens"}])
    assert known.identity("shop", "pay", {"text": "paid on 2027-09-09: 5 pens"}) == known.identity(
        "shop", "pay", {"text": "paid on 2026-01-02: 5 pens"}
    )
    assert known.identity("shop", "pay", {"text": "paid on 2026-01-02: 6 pens"}) != known.identity(
        "shop", "pay", {"text": "paid on 2026-01-02: 5 pens"}
    )


def test_a_path_with_an_id_is_the_same_call() -> None:
    first, second = [(call("POST /orders/a1/pay"), None)], [(call("POST /orders/b2/pay"), None)]
    known = masks_of([first, second])
    assert known.identity("shop", "POST /orders/c3/pay", None) == known.identity("shop", "POST /orders/a1/pay", None)
    assert known.identity("shop", "POST /orders/c3/void", None) != known.identity("shop", "POST /orders/a1/pay", None)


def test_columns_that_differ_vary_also_where_the_rows_came_in_another_order() -> None:
    early = rows(row("[1]", id=1, amount=30, at="x"), row("[2]", id=2, amount=20, at="y"))
    late = rows(row("[1]", id=1, amount=20, at="z"), row("[2]", id=2, amount=30, at="w"))
    varying, lonely = varying_of(early, late)
    assert varying.columns == {("shop", "payments", "id"), ("shop", "payments", "at")}
    assert not lonely


def test_a_row_that_only_one_run_has_is_told() -> None:
    varying, lonely = varying_of(rows(row("[1]", id=1), row("[2]", id=2)), rows(row("[1]", id=1)))
    assert varying == Varying()
    assert [held.key for held in lonely] == ["[2]"]
