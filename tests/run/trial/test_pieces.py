"""A fault in one part of a reply leaves the others as the model wrote them, in every answer format."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from coded import FUNCTION, PATCH
from trials import TEXTS, TINY

from bench.run.answers.fenced import write_answer
from bench.run.trial.decoding import Extracted
from bench.run.trial.drafts import KNOWN_TAGS
from bench.run.trial.effects import Target
from bench.run.trial.pieces import Pieces, pieces_of
from bench.run.trial.reading import read
from bench.run.trial.reply import ReplyPart, parts_of
from bench.run.trial.schema import answer_schema
from bench.run.trial.verification import Rejected, Unreadable, extract, judge
from bench.scenario import Subtask

SUBTASKS = TINY.task.subtasks
WHOLE = json.dumps(TINY.reference)
FENCED = f"Here it is:\n```json\n{WHOLE}\n```\nDone."
ONE = json.dumps(TINY.reference["total"])
DRAFT = f"<think>First: {ONE}, or\n```python\nx = {{'a': 1}}\n```</think>"


def pieces(text: str, several: bool = True) -> Pieces:
    return pieces_of(text, "stop", SUBTASKS if several else SUBTASKS[1:2])


def test_a_reply_that_nothing_struck_is_left_as_it_was_to_the_letter() -> None:
    assert pieces(FENCED).text == FENCED


def test_a_changed_part_leaves_the_others_and_what_stands_around_them() -> None:
    struck = pieces(FENCED)
    struck.put("total", '{"unit": "apples"}', ends_reply=False)
    reading = extract(struck.text)
    assert isinstance(reading, Extracted)
    assert reading.value == {**TINY.reference, "total": {"unit": "apples"}}
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
    reading = extract(struck.text)
    assert isinstance(reading, Unreadable)
    assert reading.reason == "not_json"


def test_words_or_nothing_in_the_place_of_the_only_part_are_the_whole_reply() -> None:
    for text in ("", "I cannot."):
        struck = pieces(f"```json\n{ONE}\n```", several=False)
        struck.put("total", text, ends_reply=False)
        assert struck.text == text


def test_a_reply_without_json_has_a_part_only_where_one_subtask_was_asked_for() -> None:
    assert pieces("no").part("total") is None
    assert pieces("no", several=False).part("total") == ReplyPart("no", None)


CODED = (FUNCTION, PATCH)
VALUES: dict[str, Any] = {
    "function": {"plan": "add", "code": "def add(a, b):\n    return a + b"},
    "patch": {"edits": [{"file": "a.py", "find": "x = 1", "replace": "x = 2"}, {"file": "b.py", "find": "y", "replace": ""}]},
}


def in_blocks(*subtasks: Subtask) -> str:
    value = {subtask.name: VALUES[subtask.name] for subtask in subtasks} if len(subtasks) > 1 else VALUES[subtasks[0].name]
    answer = write_answer(value, answer_schema(subtasks))
    return f"Here:\n```json\n{json.dumps(answer.value)}\n```" + "".join(answer.blocks.values()) + "\nDone."


def struck(effect: str, seed: int, name: str, *subtasks: Subtask) -> str | None:
    """The reply in code blocks with this fault in this subtask's part; None where it could not carry it."""
    taken = pieces_of(in_blocks(*subtasks), "stop", subtasks, "fenced")
    part = taken.part(name)
    assert part and part.value == VALUES[name]
    output = next(subtask.output for subtask in subtasks if subtask.name == name)
    text = TEXTS[effect].strike(Target(part.text, part.value, output), Random(seed))
    if text is None:
        return None
    taken.put(name, text, TEXTS[effect].ends_reply)
    return taken.text


@pytest.mark.parametrize("subtasks", [(FUNCTION,), (PATCH,), CODED])
def test_a_fenced_reply_that_nothing_struck_is_left_as_it_was_to_the_letter(subtasks: tuple[Subtask, ...]) -> None:
    text = in_blocks(*subtasks)
    assert pieces_of(text, "stop", subtasks, "fenced").text == text
    reading = read(text, "stop", subtasks, "fenced")
    assert isinstance(reading, Extracted)
    assert reading.value == (VALUES if len(subtasks) > 1 else VALUES[subtasks[0].name])


@pytest.mark.parametrize("subtasks", [(FUNCTION,), (PATCH,), CODED])
@pytest.mark.parametrize("effect", ["missing_field", "wrong_type", "truncated", "not_json", "empty", "refusal"])
def test_a_fenced_reply_that_was_struck_is_never_taken(effect: str, subtasks: tuple[Subtask, ...]) -> None:
    for name in (subtask.name for subtask in subtasks):
        for seed in range(40):
            text = struck(effect, seed, name, *subtasks)
            assert text is not None and text != in_blocks(*subtasks)
            values = {name: part.value for name, part in parts_of(text, "stop", subtasks, "fenced").items()}
            verdicts = judge(subtasks, values, {}, {})
            assert isinstance(verdicts[name], Rejected), text


def test_a_field_that_goes_missing_may_be_code_and_then_its_block_is_gone() -> None:
    texts = {struck("missing_field", seed, "patch", *CODED) for seed in range(40)}
    without = {name for name in ("find", "replace") for text in texts if text and f"patch.edits[0].{name}:" not in text}
    assert without == {"find", "replace"}
    for text in filter(None, texts):
        reading = read(text, "stop", CODED, "fenced")
        assert isinstance(reading, Extracted)
        assert reading.value["function"] == VALUES["function"], "the other part is as it was"
        assert text.endswith("\nDone.")


def test_code_of_which_one_value_is_wrong_stands_in_its_block() -> None:
    text = next(text for seed in range(40) if "not x = 1" in (text := struck("wrong_value", seed, "patch", *CODED) or ""))
    assert "patch.edits[0].find:\n```python\nnot x = 1\n```" in text


def test_nothing_follows_where_a_fenced_reply_breaks_off() -> None:
    taken = pieces_of(in_blocks(*CODED), "stop", CODED, "fenced")
    part = taken.part("function")
    assert part
    taken.put("function", part.text[:-10], ends_reply=True)
    assert taken.text.endswith("return") and '"patch"' in taken.text and "patch.edits" not in taken.text
    taken.put("function", '{"pl', ends_reply=True)
    assert taken.text == 'Here:\n{"function": {"pl'


def test_a_block_that_a_break_in_a_later_parts_json_cut_off_reads_the_same_when_it_is_struck() -> None:
    taken = pieces_of(in_blocks(*CODED), "stop", CODED, "fenced")
    part = taken.part("function")
    assert part
    taken.put("patch", '{"ed', ends_reply=True)
    broken = taken.text
    taken.put("function", part.text[:-10], ends_reply=True)
    assert taken.text == broken and broken.endswith('"patch": {"ed')


def test_words_in_the_place_of_a_fenced_part_take_its_blocks_with_them() -> None:
    taken = pieces_of(in_blocks(*CODED), "stop", CODED, "fenced")
    taken.put("patch", "I cannot.", ends_reply=False)
    assert '"patch": I cannot.}' in taken.text and "patch.edits" not in taken.text and "function.code:" in taken.text


def test_of_blocks_that_cannot_be_told_apart_the_part_is_the_whole_reply() -> None:
    text = '{"plan": "p"}\n```\na\n```\n```\nb\n```'
    assert pieces_of(text, "stop", [FUNCTION], "fenced").part("function") == ReplyPart(text, None)
    assert pieces_of(text, "stop", CODED, "fenced").part("function") is None


@pytest.mark.parametrize("effect", [name for name, effect in TEXTS.items() if "output" in effect.points])
@pytest.mark.parametrize("subtasks", [(FUNCTION,), (PATCH,), CODED, SUBTASKS, SUBTASKS[1:2]])
@pytest.mark.parametrize("draft", [DRAFT, DRAFT.removeprefix("<think>"), f"<r>{DRAFT}</r>"])
def test_a_fault_strikes_the_answer_and_leaves_the_draft_before_it(
    draft: str, subtasks: tuple[Subtask, ...], effect: str
) -> None:
    for answer in (WHOLE if subtasks[0] in SUBTASKS else in_blocks(*subtasks), "It cannot be done.", '{"a": '):
        bare, behind = (
            pieces_of(text, "stop", subtasks, "fenced", (*KNOWN_TAGS, ("<r>", "</r>"))) for text in (answer, draft + answer)
        )
        for name in (subtask.name for subtask in reversed(subtasks)):
            part = bare.part(name)
            assert part == behind.part(name)
            strike = TEXTS[effect].strike
            output = next(subtask.output for subtask in subtasks if subtask.name == name)
            if part and (text := strike(Target(part.text, part.value, output), Random(1))) is not None:
                for struck in (bare, behind):
                    struck.put(name, text, TEXTS[effect].ends_reply)
                assert behind.text == draft + bare.text


def test_of_a_reply_that_breaks_off_in_its_draft_there_is_nothing_to_be_struck() -> None:
    assert pieces_of(f"<think>{ONE}", "stop", SUBTASKS[1:2]).part("total") == ReplyPart("", None)


def test_a_struck_reply_to_one_subtask_has_the_rest_of_its_code_in_blocks_still() -> None:
    texts = {struck("missing_field", seed, "function", FUNCTION) or "" for seed in range(20)}
    assert {("code:\n```python" in text, "def add" in text, '"plan"' in text) for text in texts} == {
        (True, True, False),
        (False, False, True),
    }
