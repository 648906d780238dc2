"""Whatever a reply holds, judging it takes little time and memory: an output has a largest size."""

from __future__ import annotations

import pytest
from cost import processor_time
from hypothesis import given, settings
from hypothesis import strategies as st
from trials import ROOTS

from bench.run.packs import load_pack
from bench.run.trial import largeness
from bench.run.trial.largeness import too_large
from bench.run.trial.verification import Rejected, judge, validate
from bench.scenario import LARGEST_OUTPUT, MAX_LINES, Json, Scenario

values = st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@settings(max_examples=20)
@given(values, st.sampled_from([lambda big, rest: [rest, big], lambda big, rest: {"a": {"b": rest, "c": big}}]))
def test_a_text_too_long_is_found_wherever_it_stands(rest: Json, put: object) -> None:
    assert callable(put)
    assert "characters" in too_large(put("x" * (LARGEST_OUTPUT + 1), rest))
    assert "lines" in too_large(put("\n" * (MAX_LINES + 1), rest))
    assert too_large(rest) == ""


def test_keys_and_items_count_as_texts_do() -> None:
    assert too_large({"x" * (LARGEST_OUTPUT + 1): 1}) and too_large([0] * (LARGEST_OUTPUT + 1))
    assert too_large("x" * LARGEST_OUTPUT) == too_large("\n" * MAX_LINES) == ""


MILLIONS = {"list": [0] * 5_000_000, "lists": {"a": [[0] * 2_500_000] * 2}, "objects": [{"": 1}] * 2_000_000}


@pytest.mark.parametrize("value", MILLIONS.values(), ids=list(MILLIONS))
def test_a_value_of_millions_of_items_is_not_read_to_its_end(value: Json) -> None:
    with processor_time(at_most=0.3):
        assert "may have 65,536 characters and items" in too_large(value)


def weight(value: Json) -> int:
    """The characters and items of a value."""
    match value:
        case str(text):
            return len(text)
        case dict(table):
            return len(table) + sum(map(weight, (*table, *table.values())))
        case list(items):
            return len(items) + sum(map(weight, items))
    return 0


@settings(max_examples=100)
@given(values, st.integers(0, 12))
def test_a_value_is_too_large_just_where_its_characters_and_items_are_too_many(value: Json, most: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(largeness, "LARGEST_OUTPUT", most)
        patched.setattr(largeness, "MAX_PARTS", 2 * most + 1)
        assert bool(too_large(value)) == (weight(value) > most)


@pytest.fixture(scope="module")
def pack() -> Scenario:
    return load_pack("multi_file_debugging", ROOTS)


HOSTILE = {
    "megabytes": "x = 1\n" * 2**20,
    "blank lines": "\n" * 2**20,
    "parentheses": "(" * (LARGEST_OUTPUT - 500),
    "attributes": "x" + ".a" * (LARGEST_OUTPUT // 2 - 500),
    "signs": "-" * (LARGEST_OUTPUT - 500) + "1",
    "numbers": "9" * (LARGEST_OUTPUT - 500),
    "conditions": "1 if 1 else " * (LARGEST_OUTPUT // 12 - 50) + "1",
    "accents": "a" + "\u0301\u0316" * (LARGEST_OUTPUT // 2 - 500),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_fix_of_any_text_is_rejected_in_one_line(what: str, pack: Scenario) -> None:
    value = {**pack.reference, "fix_generation": _fix(pack, HOSTILE[what])}
    with processor_time(at_most=1):
        verdict = judge(pack.task.subtasks, value, pack.task.documents, {})["fix_generation"]
    assert isinstance(verdict, Rejected) and len(verdict.detail) < 400 and "\n" not in verdict.detail
    assert (verdict.reason == "schema") == (len(HOSTILE[what]) > LARGEST_OUTPUT)


def _fix(pack: Scenario, text: str) -> Json:
    [first, *rest] = pack.reference["fix_generation"]["edits"]
    return {"edits": [{**first, "replace": text}, *rest]}


def test_what_is_too_large_is_not_held_against_the_schema(pack: Scenario) -> None:
    verdict = validate(pack.task.subtasks[0], {"no": "x" * 2**20})
    assert isinstance(verdict, Rejected) and "may have 65,536" in verdict.detail
