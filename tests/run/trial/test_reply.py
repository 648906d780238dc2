"""A reply seen as the subtasks' parts."""

from __future__ import annotations

import json

from trials import TINY

from bench.run.trial.reply import ReplyPart, parts_of, reread
from bench.run.trial.verification import Unreadable

SUBTASKS = TINY.task.subtasks
WHOLE = json.dumps(TINY.reference)
FENCED = f"Here it is:\n```json\n{WHOLE}\n```\nDone."
ONE = json.dumps(TINY.reference["total"])


def test_the_parts_of_a_reply_are_the_fields_of_its_object() -> None:
    parts = parts_of(FENCED, "stop", SUBTASKS)
    assert {name: part.value for name, part in parts.items()} == TINY.reference
    assert json.loads(parts["total"].text) == TINY.reference["total"]
    assert set(parts_of('{"total": 1}', "stop", SUBTASKS)) == {"total"}


def test_of_one_subtask_the_part_is_the_whole_object() -> None:
    assert parts_of(f"So: {ONE}", "stop", SUBTASKS[1:2]) == {"total": ReplyPart(ONE, TINY.reference["total"])}


def test_of_a_reply_that_cannot_be_read_every_part_is_the_whole_text_and_the_reason() -> None:
    parts = parts_of("no", "stop", SUBTASKS)
    assert [part.text for part in parts.values()] == ["no", "no", "no"]
    assert all(isinstance(part.value, Unreadable) for part in parts.values())


def test_a_text_in_the_state_is_read_again_by_the_same_rule() -> None:
    assert reread(ONE).value == TINY.reference["total"]
    assert isinstance(reread(ONE[:9]).value, Unreadable)


def test_what_cannot_be_read_stands_in_the_state_without_its_draft() -> None:
    assert parts_of("<think>So.</think>no", "stop", SUBTASKS[:1])["gather"].text == "no"
    assert parts_of("<think>So.", "stop", SUBTASKS[:1])["gather"].text == ""
