"""The table of what providers say, and what holds for any word."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.run.openai.words import PHRASES, ROWS, STATUSES, Synonyms, WordMeaning, error_event, finish_event


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.words[0])
def test_each_word_of_the_table_means_what_its_row_says_however_it_is_spelt(row: Synonyms) -> None:
    meant = finish_event if row.place == "finish_reason" else lambda word: error_event([word])
    for word in row.words:
        for spelt in (word, word.upper(), word.replace("_", "-"), f"FinishReason.{word}", f"{word}: more of it"):
            assert meant(spelt) == row.event


def test_no_word_stands_in_two_rows_of_one_place() -> None:
    for place in ("finish_reason", "error"):
        words = ["".join(filter(str.isalnum, word)).lower() for row in ROWS if row.place == place for word in row.words]
        assert len(words) == len(set(words))


@given(st.text())
def test_a_word_that_is_not_in_the_table_means_nothing(word: str) -> None:
    known = {"".join(filter(str.isalnum, words)).lower() for row in ROWS for words in row.words}
    spelt = {"".join(filter(str.isalnum, part)).lower() for part in (word, *word.split(":"), *word.split("."))}
    assert finish_event(word) is None or spelt & known or "finishreason" in "".join(spelt)
    assert error_event([word]) in get_args(WordMeaning)


def test_the_word_that_says_the_most_counts_before_the_status_and_the_status_before_the_others() -> None:
    assert error_event(["invalid_request_error", "content_filter"], status=400) == "refusal"
    assert error_event(["api_error"], "out of credit: insufficient_quota", 429) == "rate_limit"
    assert error_event(["api_error", "insufficient_quota"], status=429) == "used_up"
    assert error_event(["invalid_request_error"], status=503) == "passing"
    assert error_event(["never heard of"]) == "passing"
    assert error_event([], next(iter(PHRASES)).upper(), 403) == "refusal"


@pytest.mark.parametrize(
    ("status", "event"),
    [
        *((status, "lasting") for status in (400, 401, 404, 422, 451)),
        *((status, "passing") for status in (408, 409, 425, 500, 529, 999)),
        (402, "used_up"),
        (429, "rate_limit"),
    ],
)
def test_a_status_means_what_openais_own_clients_make_of_it(status: int, event: str) -> None:
    assert error_event((), status=status) == event and event in STATUSES
