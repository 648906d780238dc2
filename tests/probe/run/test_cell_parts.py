"""The parts of values that hold JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.cell_parts import CellPart, changed_parts, json_growth, parts_of_column

PLAIN = st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab", max_size=2)
JSON = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
)
CONTAINERS = st.lists(JSON, max_size=3) | st.dictionaries(st.text("ab", max_size=2), JSON, max_size=3)


@given(CONTAINERS, CONTAINERS)
def test_parts_differ_where_the_json_does(early: Any, late: Any) -> None:
    before, after = json.dumps(early), json.dumps(late)
    changed = list(changed_parts("held", before, after))
    same = json.loads(before) == json.loads(after) and json.dumps(early, sort_keys=True) == json.dumps(late, sort_keys=True)
    assert bool(changed) != same
    assert not list(changed_parts("held", before, json.dumps(early, indent=1)))


@given(st.lists(JSON, max_size=3), JSON, st.integers(0, 3))
def test_an_item_more_is_a_growth_by_one_wherever_it_stands(items: list[Any], item: Any, at: int) -> None:
    more = json.dumps({"paid": [*items[:at], item, *items[at:]]})
    assert json_growth(json.dumps({"paid": items}), more) == 1
    first, second = parts_of_column("held", [{"held": json.dumps({"paid": items})}, {"held": more}])
    fewer, more_of = (sum(int(times or 0) for times in each.values()) for each in (first, second))
    assert more_of - fewer == 1 and all(part.is_item for part in second)


def test_what_is_no_json_in_each_row_is_one_part() -> None:
    states = parts_of_column("held", [{"held": '{"a": 1}'}, {"held": "paid"}, {}, None])
    assert states == [{CellPart("held"): '{"a": 1}'}, {CellPart("held"): "paid"}, {}, {}]
    assert [part.name for part in parts_of_column("held", [{"held": '{"a": {"b": 1}, "c": ["x"]}'}])[0]] == [
        "held.a.b", 'held.c with "x"'
    ]  # fmt: skip
