"""What a reasoning model writes before its answer is no answer, wherever its tags stand and whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from coded import CODE_ALONE, FUNCTION
from cost import processor_time
from hypothesis import given
from hypothesis import strategies as st
from trials import TINY

from bench.run.answers.fenced import write_answer
from bench.run.trial.decoding import Extracted
from bench.run.trial.drafts import KNOWN_TAGS, Draft, Tags, draft_of
from bench.run.trial.reading import read
from bench.run.trial.reply import reread
from bench.run.trial.schema import answer_schema
from bench.run.trial.verification import Unreadable, extract
from bench.scenario import Json, Subtask

TOTAL = TINY.task.subtask("total")
OWN: Tags = (*KNOWN_TAGS, ("<musing>", "</musing>"), ("((", "))"))
CLOSING = [closing for _, closing in OWN]
WORDS = ["{", "}", '{"a": ', '{"a": {"b": 1}}', "'", ",", "[", "\n```python\n", "\n```\n", "\\", "1e", "NaN", "I'm sorry", "{}"]
NOTES = st.lists(st.sampled_from([*WORDS, *CLOSING, *(opening for opening, _ in OWN)]) | st.text(max_size=5), max_size=12).map(
    "".join
)
TEXTS = st.lists(st.sampled_from([*CLOSING, "<think>", "x", '"', "{", "}", "\n```\n"]), max_size=4).map("".join)
ANSWERS = st.fixed_dictionaries({"total": st.integers(), "unit": TEXTS})
CODED = st.fixed_dictionaries({"plan": TEXTS, "code": TEXTS})


def value_of(text: str, tags: Tags = KNOWN_TAGS) -> Json:
    reading = read(text, "stop", [TOTAL], tags=tags)
    assert isinstance(reading, Extracted), reading
    return reading.value


def why(text: str, finish: str = "stop") -> tuple[str, str]:
    reading = read(text, finish, [TOTAL])
    assert isinstance(reading, Unreadable), reading
    return reading.reason, reading.detail


@pytest.mark.parametrize(
    "text",
    [
        '<think>First guess: {"a": 1}, but no.</think>{"a": 2}',
        'Its shape is {"a": 1}.\n</think>\n\nHere: ```json\n{"a": 2}\n```',
        '<think>{"a": 1}</think>{"a": 3}</think> {"a": 2}',
        '<think><think>{"a": 1}</think>{"a": 3}</think>{"a": 2}',
        '<think>Unclosed: {"a": {"b": [</think>{"a": 2}',
        '<think>{"a": "unclosed </think>{"a": 2}',
        '<think>{"a": NaN, </think>{"a": 2}',
        "<think>{'a': 1}</think>" + '{"a": 2}',
        '<think>I cannot help.</think>{"a": 2}<think>{"a": 3}',
        '{"a": 2} is what I would have said before <think>',
    ],
)
def test_the_first_object_behind_the_last_draft_is_the_answer(text: str) -> None:
    assert value_of(text) == {"a": 2}
    assert extract(text) == read(text, "stop", [TOTAL])


@pytest.mark.parametrize(("opening", "closing"), OWN[len(KNOWN_TAGS) :])
def test_a_draft_stands_in_the_tags_that_are_named(opening: str, closing: str) -> None:
    assert value_of(f'{opening}{{"a": 1}}{closing}{{"a": 2}}', OWN) == {"a": 2}
    assert value_of(f'{{"a": [1, {closing}{{"a": 2}}', OWN) == {"a": 2}
    assert draft_of(f'{opening}{{"a": 1}}', OWN).is_open


def test_tags_that_nobody_named_are_text() -> None:
    assert value_of('<musing>{"a": 1}</musing>{"a": 2}') == {"a": 1}


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        ('<think>{"a": 1}', "cut_off", "the draft before the answer is not closed: the reply breaks off inside it"),
        (
            ' \n<think>a</think>\n<think>{"a": 1}',
            "cut_off",
            "the draft before the answer is not closed: the reply breaks off inside it",
        ),
        ('{"a": 1}</think> \n', "empty", "nothing follows the draft"),
        ('{"a": 1}</think>I\'m sorry, no.', "refusal", "the reply is a refusal"),
        ('{"a": 1}</think>It is 1.', "not_json", "the reply holds no JSON object"),
        ('{"a": 1}</think>{"a": ', "cut_off", "the JSON object is not closed: the reply breaks off inside it"),
        (
            '{"a": 1}\n</think>{"a": ,}',
            "not_json",
            "the JSON object is malformed: Expecting value at line 2, column 15",
        ),
    ],
)
def test_nothing_in_a_draft_is_taken_where_no_answer_follows(text: str, reason: str, detail: str) -> None:
    assert why(text) == (reason, detail)


@pytest.mark.parametrize(("opening", "closing"), KNOWN_TAGS)
def test_the_tags_of_models_that_are_in_use_are_known(opening: str, closing: str) -> None:
    answer, opened = {"a": 2}, "" if opening == closing else opening
    for before in (opened, ""):
        assert value_of(f'{before}Perhaps {{"a": 1}}?\n{closing}{json.dumps(answer)}') == answer
        assert why(f'{before}{{"a": 1}}{closing}') == ("empty", "nothing follows the draft")
    if opened:
        assert why(f'{opening}{{"a": 1}}')[0] == "cut_off"


@pytest.mark.parametrize(
    "text",
    [
        '<|channel|>analysis<|message|>{"a": 1}<|end|><|start|>assistant<|channel|>final<|message|>{"a": 2}<|return|>',
        '<|channel|>analysis<|message|>{"a": 1}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{"a": 2}',
        'analysisPerhaps {"a": 1}.assistantfinal{"a": 2}',
        '<|channel>thought\nPerhaps {"a": 1}.\n<channel|>{"a": 2}',
        'Here are my reasoning steps:\n{"a": 1}\n[BEGIN FINAL RESPONSE]\n{"a": 2}\n[END FINAL RESPONSE]',
        '<think>\n{"a": 1}\n</think>\n<answer>\n{"a": 2}\n</answer>',
        '<|START_THINKING|>{"a": 1}<|END_THINKING|><|START_RESPONSE|>{"a": 2}<|END_RESPONSE|>',
        '<think>{"a": 1}</think><reasoning>{"a": 3}</reasoning>{"a": 2}',
    ],
)
def test_whole_replies_as_servers_without_a_parser_give_them_are_read(text: str) -> None:
    assert value_of(text) == {"a": 2}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 2}\n<reasoning>It is not {"a": 1}.</reasoning>',
        '```json\n{"a": 2}\n```\n<thinking>Right.</thinking>\n<reason>So.</reason>\n',
        '<think>{"a": 1}</think>{"a": 2}<think>Good.</think>',
    ],
)
def test_a_note_behind_the_answer_ends_no_draft(text: str) -> None:
    assert value_of(text) == {"a": 2}


@pytest.mark.parametrize("text", ['<think>{"a": 1}</think> <reasoning>No.</reasoning>', '{"a": 1}</think><think>No.</think>'])
def test_two_drafts_and_nothing_behind_them_are_no_answer_and_a_note(text: str) -> None:
    assert why(text) == ("empty", "nothing follows the draft")


def test_a_provider_that_refuses_has_refused_also_in_mid_draft() -> None:
    assert why("<think>First", "content_filter")[0] == "refusal"


def test_a_closing_tag_inside_the_answer_ends_no_draft() -> None:
    assert value_of('{"a": "behind </think> it"}') == {"a": "behind </think> it"}
    assert value_of('<think>{"a": 1}</think>{"a": "</think>", "b": {}} {"c": 1}') == {"a": "</think>", "b": {}}
    assert why('{"a": "behind </think> it')[0] == "cut_off"
    for end in ('"', '", ', '", "b": nul', '"\n```'):
        assert why('{"a": "behind </think> it' + end)[0] == "cut_off"


@given(NOTES, ANSWERS, st.sampled_from(OWN), st.booleans())
def test_whatever_a_draft_holds_the_answer_behind_it_is_read(
    notes: str, answer: dict[str, Any], tags: tuple[str, str], opened: bool
) -> None:
    opening, closing = tags
    text = f"{opening if opened else ''}{notes}{closing}\nSo:\n{json.dumps(answer)}"
    assert value_of(text, OWN) == answer


@given(st.lists(st.sampled_from(["x = 1\n", "s.split('</think>')\n", "{'a': '</think>'}\n", "# </think>\n"])).map("".join))
def test_a_closing_tag_in_code_ends_no_draft_where_code_stands_in_blocks(code: str) -> None:
    for value, subtask in (({"plan": "p", "code": code}, FUNCTION), ({"code": code}, CODE_ALONE)):
        for draft in ("", "<think>```python\nreturn {'a': 1}\n```\n</think>", 'Or:\n```python\n{"plan": \n</think>\n'):
            reading = read(draft + write_answer(value, answer_schema([subtask])).text, "stop", [subtask], "fenced")
            assert isinstance(reading, Extracted) and reading.value == value


@given(NOTES, CODED)
def test_so_is_code_in_longer_fences_and_in_the_json_itself(notes: str, value: dict[str, Any]) -> None:
    text = f"{notes}</think>\n{write_answer(value, answer_schema([FUNCTION])).text}"
    reading = read(text, "stop", [FUNCTION], "fenced")
    assert isinstance(reading, Extracted) and reading.value == value


@given(NOTES.filter(lambda text: not any(closing in text for closing in CLOSING) and not text.startswith("<think>")))
def test_a_reply_without_a_closing_tag_has_no_draft(text: str) -> None:
    assert draft_of("So: " + text, OWN) == Draft()


@given(st.text(), st.sampled_from([TOTAL, FUNCTION, CODE_ALONE]), st.sampled_from(["json", "fenced"]))
def test_any_text_is_read_or_refused(text: str, subtask: Subtask, answer_format: Any) -> None:
    read(text, "stop", [subtask], answer_format, OWN)


def test_what_stands_in_the_state_is_no_reply() -> None:
    assert reread('</think>{"a": 1}').value == {"a": 1}
    assert reread('{"a": 1}</think>').value == {"a": 1}


@pytest.mark.parametrize(
    "part",
    [
        *("</think>", "<think>", '{"a":"</think>', '{"a":{"b":"</think>","c":', '{"a":[1,</think>', "{'</think>", "{ </think>"),
        *('{"a":NaN,"b":"</think>",', '{"a":1}</think>', '{"a":"</think>"}', "\n````\n</think>\n```\n", "\n```py\n</think>"),
        *('"', '{"a":', '{"a":"' + 999 * "x" + '</think>","b":', "\n```\n</think>x\n```x\n"),
    ],
)
def test_a_draft_is_found_in_time_that_grows_as_the_text_does(part: str) -> None:
    text = part * (100_000 // len(part))
    with processor_time(at_most=0.8):
        for fenced in (False, True):
            draft_of(text, OWN, fenced)
            draft_of(f"{text}</think>{text}", OWN, fenced)
