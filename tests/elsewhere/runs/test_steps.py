"""A run's steps hold each text once, and give each prompt back as it was."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from bench.elsewhere.runs.steps import ImportedCall, ImportedStep, RunBuilder, as_shown, ranges_of, tool_names

PARTS = st.lists(st.sampled_from(["[user]\nA", "[user]\nB", "[assistant]\nC", "[assistant]\nD", "[system]\nE"]), max_size=8)


@given(st.lists(st.tuples(PARTS, st.sampled_from("CDF")), min_size=1, max_size=12))
def test_a_prompt_has_the_parts_that_it_was_given(calls: list[tuple[list[str], str]]) -> None:
    """In whatever way prompts repeat, shorten or reorder what came before."""
    run = RunBuilder("x")
    for prompt, reply in calls:
        before, new = run.find_repeated(prompt)
        run.add([prompt[place] for place in new], before, reply)
    recording = run.finish()
    for number, (prompt, _) in enumerate(calls, 1):
        parts = re.split(r"\n\n(?=\[)", recording.prompt(number)) if prompt else []
        assert sorted(parts) == sorted(prompt)


@given(st.integers(2, 40))
def test_a_prompt_that_grows_is_held_once(steps: int) -> None:
    run, prompt = RunBuilder("x"), list[str]()
    for number in range(steps):
        prompt.append(as_shown("user", f"question {number}"))
        before, new = run.find_repeated(prompt)
        run.add([prompt[place] for place in new], before, f"answer {number}")
        prompt.append(as_shown("assistant", f"answer {number}"))
    recording = run.finish()
    assert all(step.before == (((0, 2 * number),) if number else ()) for number, step in enumerate(recording.steps))
    assert recording.prompt(steps) == "\n\n".join(prompt[:-1])


@given(st.lists(st.integers(0, 30), unique=True))
def test_ranges_hold_their_numbers(numbers: list[int]) -> None:
    places = sorted(numbers)
    assert [place for begin, end in ranges_of(places) for place in range(begin, end)] == places


@given(st.lists(st.sampled_from(["a", "a_2", "a_2_2", "A", "-", "a_3", "b"]), max_size=12))
def test_each_call_of_a_step_has_a_name_of_its_own(tools: list[str]) -> None:
    step = ImportedStep("", (), "x", tuple(ImportedCall(tool, json.dumps({}), "", reads=False) for tool in tools))
    names = [name for *_, name in tool_names([step])]
    assert len(set(names)) == len(tools) and all(re.fullmatch(r"step_01_[a-z0-9_]+", name) for name in names)


def test_names_of_two_tools_that_look_like_the_second_call_of_the_first() -> None:
    step = ImportedStep("", (), "x", tuple(ImportedCall(tool, "", "", reads=False) for tool in ("a_2", "a")))
    assert [name for *_, name in tool_names([step])] == ["step_01_a_2", "step_01_a_2_2"]
