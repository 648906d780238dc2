"""Values as a witness shows them."""

from __future__ import annotations

import json
import math
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.volatile import key_columns
from bench.probe.run.witness.rows import Encoding

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20), st.binary(max_size=20)
)


@given(VALUES, VALUES)
def test_values_look_alike_only_if_they_are_equal(first: object, second: object) -> None:
    encoding = Encoding()
    shown = [(type(cell), cell) for cell in (encoding.cell("a", first), encoding.cell("a", second))]
    assert (shown[0] == shown[1]) == ((type(first), first) == (type(second), second))
    assert json.loads(json.dumps(encoding.row(["a"], [first]))) == encoding.row(["a"], [first])


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (math.nan, "(number) NaN"),
        (2**70, f"(number) {2**70}"),
        (Decimal("10.50"), 10.5),
        (Decimal("0.1000000000000000000001"), "(number) 0.1000000000000000000001"),
        (b"\0\xff", "(bytes) 00ff"),
        ("(bytes) 00ff", "(text) (bytes) 00ff"),
        ("", ""),
        (None, None),
        ("\udcff", "\\xff"),
    ],
)
def test_what_json_lacks_is_text_that_says_its_kind(value: object, cell: object) -> None:
    assert Encoding().cell("a", value) == cell


def test_a_hidden_value_is_a_digest_that_only_the_secret_repeats() -> None:
    first, second, other = (Encoding(frozenset({"Mail"}), secret).cell("mail", "canary") for secret in (b"a", b"a", b"b"))
    assert first == second != other
    assert "canary" not in str(first)
    assert Encoding(frozenset({"Mail"}), b"a").cell("mail", None) != first


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [{"mail": "canary"}], "b": 1}',
        '{"mail": "canary"}\n{"b": 1}\n',
        '[{"MAIL": ["canary"]}]',
        '\n {"mail": "canary"}',
    ],
)
def test_a_hidden_member_of_json_is_a_digest(text: str) -> None:
    cell = Encoding(frozenset({"mail"})).cell("text", text)
    assert "canary" not in str(cell)
    assert "(hidden) " in str(cell)
    assert Encoding(frozenset({"other"})).cell("text", text) == text


def test_json_with_hidden_members_that_is_nested_too_deeply_is_a_digest() -> None:
    text = f'{"[" * 1500}{{"mail": "canary"}}{"]" * 1500}'
    assert "canary" in str(Encoding().cell("text", text))
    assert "canary" not in str(Encoding(frozenset({"mail"})).cell("text", text))


def test_a_long_value_is_its_size_and_digest() -> None:
    assert str(Encoding().cell("a", "x" * 10_000)).startswith("(digest) 10000 bytes of text ")
    assert Encoding().cell("a", "x" * 10_000) != Encoding().cell("a", "x" * 9_999 + "y")


@given(st.data())
def test_the_columns_of_a_key_are_told_from_columns_with_equal_values(data: st.DataObject) -> None:
    columns = data.draw(st.permutations(["id", "line", "quantity", "cents"]))
    key = data.draw(st.permutations(columns))[: data.draw(st.integers(1, 3))]
    before, after = (data.draw(st.lists(st.sampled_from([1, 2, "1", None]), min_size=4, max_size=4)) for _ in range(2))
    for name in key:  # a row's key is the same before and after
        after[columns.index(name)] = before[columns.index(name)]
    for pair in ((None, tuple(after)), (tuple(before), tuple(after)), (tuple(before), None)):
        row = Encoding().difference("shop", "line", key, columns, pair, Counter())
        assert key_columns(row) == {*key}
        for shown, values in ((row.before, pair[0]), (row.after, pair[1])):
            assert shown == (None if values is None else dict(zip(columns, values, strict=True)))
