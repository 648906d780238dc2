"""Words of strangers stand on one line, and nothing in them is more than a letter."""

from __future__ import annotations

import pytest
from hostile import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from bench.common.errors import LONGEST_NAME_LIST, MAX_LISTED_NAMES, nearest, one_line, whole_text


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_a_hostile_text_is_one_line_that_any_file_can_hold(text: str) -> None:
    line = one_line(text, 100)
    assert line.isprintable() and len(line) <= 100
    assert line.encode()


def test_signs_that_cannot_be_printed_are_shown_as_their_escapes() -> None:
    assert one_line("a\x1b[2J\ud800\tb\nc", 100) == "a\\x1b[2J\\ud800 b c"


@given(st.text(), st.integers(4, 50))
def test_a_line_that_is_not_the_whole_text_says_so(text: str, longest: int) -> None:
    line = one_line(text, longest)
    assert len(line) <= longest
    assert line.endswith("...") or text.split() == line.split() or not text.isprintable()


def test_of_megabytes_only_the_beginning_is_read() -> None:
    assert one_line(" " * 2**22 + "x", 8) == "..." and one_line("x" * 2**22, 8) == "xxxxx..."


@given(st.text(st.characters(categories=["Cs"]) | st.sampled_from("a😀\ud83d\ude00")))
def test_halves_of_a_character_come_together_and_a_lone_one_is_replaced(text: str) -> None:
    assert whole_text(text) == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_an_unknown_name_is_told_the_nearest_or_the_first_of_many() -> None:
    names = [f"table{number}" for number in range(100)]
    assert nearest("tabel7", names) == "did you mean 'table7'?"
    assert nearest("x", ["b", "a"]) == "known: a, b"
    assert nearest("k8s", ["functions", "k8s_oomkill", "paper"]) == "did you mean 'k8s_oomkill'?"
    assert nearest("rep", ["repair", "repairs", "repair_bank", "smoke"]) == "did you mean 'repair', 'repairs' or 'repair_bank'?"
    assert nearest("x", names).endswith(" and 88 more") and nearest("x", names).count(",") == MAX_LISTED_NAMES - 1


def test_a_list_of_long_names_ends_before_the_line_is_too_long_to_read() -> None:
    line = nearest("x", [f"{number:0100}" for number in range(50)])
    assert line.endswith(" and 47 more") and len(line) < LONGEST_NAME_LIST + 50


def test_a_name_that_is_known_twice_is_told_once() -> None:
    assert nearest("pear", ["fig", "fig", "apple"]) == "known: apple, fig"
