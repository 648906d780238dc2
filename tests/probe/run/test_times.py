"""How often an effect was applied to a value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.times import effect_counts, inserted_text

TEXTS = st.text("ab;", max_size=4)


@given(TEXTS, TEXTS, TEXTS)
def test_a_text_that_was_put_in_is_found_whatever_stands_around_it(head: str, put_in: str, tail: str) -> None:
    former, later = head + tail, head + put_in + tail
    inserted = inserted_text(former, later)
    assert inserted is not None and len(inserted) == len(put_in)
    assert any(former[:at] + inserted + former[at:] == later for at in range(len(former) + 1))


@given(TEXTS, TEXTS)
def test_a_text_of_which_something_is_gone_has_nothing_put_in(former: str, later: str) -> None:
    stands = any(former == later[:at] + later[at + len(later) - len(former) :] for at in range(len(former) + 1))
    assert (inserted_text(former, later) is not None) == (len(later) >= len(former) and stands)


@given(TEXTS, TEXTS, TEXTS.filter(bool), st.integers(0, 4))
def test_what_was_put_in_at_one_place_is_counted(head: str, tail: str, put_in: str, times: int) -> None:
    stood, normal, now = (head + put_in * count + tail for count in (0, 1, times))
    assert effect_counts([(stood, normal)], stood, normal, now, [times]) == (times,)


@given(st.integers(1, 500), st.integers(0, 9_999), st.integers(0, 4))
def test_a_number_that_is_kept_as_a_text_is_counted_as_a_number(amount: int, stood: int, times: int) -> None:
    first, normal, now = (f"{stood + count * amount}.00" for count in (0, 1, times))
    assert effect_counts([(first, normal)], first, normal, now, [times]) == (times,)
