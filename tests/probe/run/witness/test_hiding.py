"""Hidden values: whatever a text looks like, none of them stands in it."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.witness.hiding import MAX_SEARCHED, HiddenNames

CANARY = "4kanary7"
HIDDEN = HiddenNames({"Card", "card number", 'c"a\\rd/é'}, b"key")
NAMES = st.sampled_from(["card", "CARD", "Card Number", 'c"a\\RD/É'])
CANARIES = st.builds(lambda before, after: f"{before}{CANARY}{after}", st.text(max_size=6), st.text(max_size=6))
"""Texts with the canary in the middle, so that no part of a hidden value may remain."""
HIDDEN_VALUES = st.one_of(
    CANARIES,
    st.lists(CANARIES, min_size=1, max_size=3),
    st.dictionaries(st.text(max_size=3), CANARIES, min_size=1, max_size=2),
)
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)
)
PROSE = st.sampled_from(["", "Found:\n", 'It is 5" wide, and so:\n\n', "\n\t ", "Don't pay {this}: ", "data: "])


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """JSON values in which a hidden member has a canary, at any depth, among other values."""
    value: Any = {**draw(st.dictionaries(st.text(max_size=4), PLAIN, max_size=2)), draw(NAMES): draw(HIDDEN_VALUES)}
    for _ in range(draw(st.integers(0, 5))):
        others = draw(st.lists(PLAIN, max_size=2))
        value = draw(st.sampled_from([[*others, value], {"inner": value, "others": others}, {"text": json.dumps(value)}]))
    return value


@given(documents(), PROSE, PROSE, st.sampled_from([None, 0, 2]), st.booleans())
def test_a_hidden_member_never_stands_in_a_text_with_json(
    document: Any, before: str, after: str, indent: int | None, ascii_only: bool
) -> None:
    shown = HIDDEN.hide_in_text(f"{before}{json.dumps(document, indent=indent, ensure_ascii=ascii_only)}{after}")
    assert CANARY not in shown and "(hidden) " in shown
    assert shown.startswith(before) and shown.endswith(after)
    assert HIDDEN.hide_in_text(shown) == shown
    json.loads(shown[len(before) : len(shown) - len(after)], strict=False)  # it is still JSON


@given(st.lists(documents(), min_size=1, max_size=3), st.sampled_from(["\n", "\r\n", "\n\n", " "]))
def test_a_hidden_member_never_stands_in_lines_of_json(lines: list[Any], between: str) -> None:
    shown = HIDDEN.hide_in_text(between.join(map(json.dumps, lines)))
    assert CANARY not in shown and shown.count(between) >= len(lines) - 1


@given(documents(), st.integers(0, 200))
def test_a_hidden_member_never_stands_in_json_that_is_cut_off(document: Any, kept: int) -> None:
    text = json.dumps(document)
    assert CANARY not in HIDDEN.hide_in_text(text[: len(text) - kept])


@given(documents())
def test_a_hidden_member_never_stands_in_a_json_value(document: Any) -> None:
    shown = HIDDEN.hide_in({"answer": [document]})
    assert CANARY not in json.dumps(shown, ensure_ascii=False) and "(hidden) " in json.dumps(shown)
    assert HIDDEN.hide_in(shown) == shown


@given(st.dictionaries(st.sampled_from(["a", "b c", "Card", "card number"]), CANARIES, min_size=1))
def test_a_hidden_parameter_never_stands_in_a_query_or_a_form(fields: dict[str, str]) -> None:
    form = urlencode({**fields, "Card": CANARY})
    expected = {name: value for name, value in fields.items() if not HIDDEN.has(name)}
    for text in (form, f"https://shop.example/pay?{form}#top", f"GET /pay?{form} HTTP/1.1", json.dumps({"url": f"/?{form}"})):
        shown = HIDDEN.hide_in_text(text)
        assert f"ard={CANARY}" not in shown and "(hidden)" in shown
        left = HIDDEN.hide_in_text(form)
        assert {
            name: values[0] for name, values in parse_qs(left).items() if name in expected
        } == expected or "" in fields.values()
    further = HIDDEN.hide_in_text(f"to={quote(f'https://shop.example/?{form}', safe='')}&n=1")
    assert f"ard%3D{CANARY}" not in further and further.endswith("&n=1")


@pytest.mark.parametrize(
    "text",
    [
        f"[{{'owner': 'Ada', 'card': '{CANARY}'}}]",  # what a server in Python prints
        f"{{'card': {{'number': \"it's {CANARY}\"}}}}",
        json.dumps({"text": str([{"card": CANARY}])}),
        f"card={CANARY} {CANARY}&flag",
        f'?flag&card={CANARY}&x="1"',
        f'{{"card": {CANARY} {CANARY}, "x": 1}}',  # no JSON, yet a member of it
    ],
)
def test_what_is_nearly_json_or_nearly_a_query_is_hidden_too(text: str) -> None:
    shown = HIDDEN.hide_in_text(text)
    assert CANARY not in shown and "(hidden)" in shown
    assert "(hidden)" not in HiddenNames({"other"}).hide_in_text(text)


@given(st.one_of(st.text(max_size=30), documents().map(json.dumps)))
def test_a_text_without_a_hidden_name_is_unchanged(text: str) -> None:
    assert HiddenNames({"iban"}).hide_in_text(text) == text == HiddenNames().hide_in_text(text)


def test_equal_values_have_equal_digests_wherever_they_stand_and_other_keys_give_other_digests() -> None:
    digest = HIDDEN.digest("4711")
    assert HIDDEN.hide_in({"card": "4711"}) == {"card": digest}
    assert json.loads(HIDDEN.hide_in_text('{"card": "4711"}')) == {"card": digest}
    assert parse_qs(HIDDEN.hide_in_text("card=4711")) == {"card": [digest]}
    assert HIDDEN.digest({"a": 1, "b": 2}) == HIDDEN.digest({"b": 2, "a": 1}) != HIDDEN.digest({"a": 1, "b": 3})
    assert HiddenNames({"card"}, b"other").digest("4711") != digest
    assert len({HIDDEN.digest(value) for value in (1, "1", True, 1.0, None, b"1")}) == 6


def test_a_text_in_too_many_layers_is_one_digest() -> None:
    text = f"card={CANARY}"
    for _ in range(MAX_SEARCHED):
        text = f"a={quote(text, safe='')}"
    shown = HIDDEN.hide_in_text(text)
    assert CANARY not in shown and "(hidden)" in shown


@pytest.mark.parametrize(
    "piece",
    ['"', "'", '\\"', '"a":', "?a=", "%25", "&", '{"card":', "{", '"\\', "card=", '"card": "', "=%41?", "?a=%2525", "?card="],
)
def test_the_time_is_linear_in_the_length_of_a_text(piece: str) -> None:
    def seconds(count: int) -> float:
        text, start = piece * count, time.process_time()
        HIDDEN.hide_in_text(text)
        return time.process_time() - start

    short = min(seconds(5_000) for _ in range(3))
    assert min(seconds(50_000) for _ in range(3)) < 40 * short + 0.05  # quadratic time would be 100 times as long
