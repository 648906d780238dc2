"""A reply seen as parts: a fault in one leaves the others as the model wrote them."""

from __future__ import annotations

import json

from trials import TINY

from bench.runtime.pieces import Pieces, pieces_of
from bench.runtime.reply import Part, parts_of, reread
from bench.runtime.verification import Extracted, Unreadable, extract

SUBTASKS = TINY.task.subtasks
WHOLE = json.dumps(TINY.reference)
FENCED = f"Here it is:\n```json\n{WHOLE}\n```\nDone."
ONE = json.dumps(TINY.reference["total"])


def pieces(text: str, several: bool = True) -> Pieces:
    return pieces_of(text, "stop", SUBTASKS if several else SUBTASKS[1:2])


def test_the_parts_of_a_reply_are_the_fields_of_its_object() -> None:
    parts = parts_of(FENCED, "stop", SUBTASKS)
    assert {name: part.value for name, part in parts.items()} == TINY.reference
    assert json.loads(parts["total"].text) == TINY.reference["total"]
    assert set(parts_of('{"total": 1}', "stop", SUBTASKS)) == {"total"}


def test_of_one_subtask_the_part_is_the_whole_object() -> None:
    assert parts_of(f"So: {ONE}", "stop", SUBTASKS[1:2]) == {"total": Part(ONE, TINY.reference["total"])}


def test_of_a_reply_that_cannot_be_read_every_part_is_the_whole_text_and_the_reason() -> None:
    parts = parts_of("no", "stop", SUBTASKS)
    assert [part.text for part in parts.values()] == ["no", "no", "no"]
    assert all(isinstance(part.value, Unreadable) for part in parts.values())


def test_a_reply_that_nothing_struck_is_left_as_it_was_to_the_letter() -> None:
    assert pieces(FENCED).text == FENCED


def test_a_changed_part_leaves_the_others_and_what_stands_around_them() -> None:
    struck = pieces(FENCED)
    struck.put("total", '{"unit": "apples"}', ends_reply=False)
    found = extract(struck.text)
    assert isinstance(found, Extracted)
    assert found.value == {**TINY.reference, "total": {"unit": "apples"}}
    assert struck.text.startswith("Here it is:\n```json\n")
    assert struck.text.endswith("\n```\nDone.")


def test_nothing_follows_where_a_reply_breaks_off() -> None:
    struck = pieces(FENCED)
    struck.put("total", '{"total": 4', ends_reply=True)
    assert struck.text.endswith('"total": {"total": 4')
    assert '"gather"' in struck.text
    assert '"review"' not in struck.text


def test_words_in_the_place_of_one_part_break_the_reply_but_keep_the_rest() -> None:
    struck = pieces(FENCED)
    struck.put("total", "I cannot.", ends_reply=False)
    assert '"total": I cannot., "review"' in struck.text
    found = extract(struck.text)
    assert isinstance(found, Unreadable)
    assert found.reason == "not_json"


def test_words_or_nothing_in_the_place_of_the_only_part_are_the_whole_reply() -> None:
    for text in ("", "I cannot."):
        struck = pieces(f"```json\n{ONE}\n```", several=False)
        struck.put("total", text, ends_reply=False)
        assert struck.text == text


def test_a_reply_without_json_has_a_part_only_where_one_subtask_was_asked_for() -> None:
    assert pieces("no").part("total") is None
    assert pieces("no", several=False).part("total") == Part("no", None)


def test_a_text_in_the_state_is_read_again_by_the_same_rule() -> None:
    assert reread(ONE).value == TINY.reference["total"]
    assert isinstance(reread(ONE[:9]).value, Unreadable)
