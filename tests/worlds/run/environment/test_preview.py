"""A preview says what a call would change and what speaks against it, and leaves the world as it was."""

from __future__ import annotations

from typing import Any

import pytest
from little_worlds import Nothing, with_tool, world

from bench.worlds.run.environment import Db, Moment, Tool, World
from bench.worlds.run.environment.preview import MAX_LINE_LENGTH, MAX_ROWS


def untouched(shop: World) -> tuple[object, ...]:
    return shop.digest(), len(shop.journal()), shop.now, shop.dump()


def test_a_preview_names_the_rows_that_the_call_then_changes_and_leaves_none_of_them() -> None:
    shop = world()
    before = untouched(shop)
    preview = shop.preview("refund", {"order": 1, "amount": 40})
    assert untouched(shop) == before
    assert (preview.tool, preview.effect) == ("refund", "refund of order 1")
    assert [change.text for change in preview.changes] == ["+ refunds: id 1, order_id 1, amount 40, at 0"]
    assert shop.call("refund", {"order": 1, "amount": 40}).ok


def test_a_preview_of_a_call_that_lets_something_happen_later_lets_nothing_happen() -> None:
    shop = world()
    before = untouched(shop)
    assert shop.preview("notify", {"order": 1, "text": "hello"}).changes
    assert untouched(shop) == before
    assert "reply" not in {arrival.kind for arrival in shop.wait(days=2)}


@pytest.mark.parametrize(
    ("first", "tool", "given", "risk"),
    [
        (None, "refund", {"order": 1, "amount": 40}, "it cannot be taken back"),
        (None, "reserve", {"order": 1}, "it can be taken back by release"),
        (None, "refund", {"order": 2, "amount": 250}, "the policy wants a person: large"),
        (("refund", {"order": 1, "amount": 40}), "refund", {"order": 1, "amount": 40}, "its effect stands already, once"),
        (None, "release", {"order": 1}, "the tool does not do it: "),
        (None, "refund", {"order": "one"}, "the arguments of 'refund' do not fit: "),
    ],
)
def test_each_risk_is_a_line_where_it_is_so(first: Any, tool: str, given: dict[str, Any], risk: str) -> None:
    shop = world()
    if first:
        shop.call(*first)
    assert any(line.startswith(f"risk: {risk}") for line in shop.preview(tool, given).text.splitlines())


def test_what_has_changed_since_the_agent_read_it_is_a_risk_until_it_is_read_again() -> None:
    shop, call = world(), {"order": 1, "amount": 40}
    shop.call("read_order", {"order": 1})
    shop.change_elsewhere(["order 1"])
    assert "risk: changed since it was read: order 1" in shop.preview("refund", call).text
    shop.call("read_order", {"order": 1})
    assert "changed since" not in shop.preview("refund", call).text


def test_the_text_of_a_preview_is_bounded_however_much_a_call_changes() -> None:
    def run(db: Db, _: Nothing, __: Moment) -> Nothing:
        for number in range(50):
            db.write("INSERT INTO messages VALUES (?, ?)", 1 + number % 3, "long " * 100)
        return Nothing()

    flood = Tool("flood", "final", Nothing, Nothing, run, effect=lambda _: "flood " * 100)
    lines = with_tool(flood).preview("flood", {}).text.splitlines()
    assert len(lines) == 2 + MAX_ROWS + 1 and max(map(len, lines)) == MAX_LINE_LENGTH
    assert lines[-1] == f"and {50 - MAX_ROWS} more rows"
