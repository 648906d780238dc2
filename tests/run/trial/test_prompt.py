"""One renderer: what a subtask reads is in its prompt, nothing else is, and the form says what the schema says."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from coded import CODE_ALONE, FILES, FUNCTION, PATCH
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, create_model
from trials import ROOTS, TINY, answered_packs

from bench.record.formats import AnswerFormat
from bench.run.answers.places import holds_code
from bench.run.packs import load_pack
from bench.run.trial.prompt import form, form_of, render
from bench.run.trial.schema import answer_schema
from bench.run.trial.verification import Rejected
from bench.scenario import Output

TASK = TINY.task
GATHER, TOTAL, _ = TASK.subtasks
REJECTED = Rejected("total", "schema", "total: Field required", reply='{"unit": "apples"}')
NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True).filter(
    lambda name: not name.startswith(("model_", "schema", "json"))
)
TYPES = st.sampled_from([int, float, str, bool, list[str], list[int], Literal["x", "y"], int | None])


def user(*args: object, **kwargs: object) -> str:
    return render(*args, **kwargs)[1].content  # type: ignore[arg-type]


def test_a_prompt_holds_the_role_the_instructions_what_is_read_and_the_form() -> None:
    system, asked = render(TASK, [TOTAL], {"gather": "GATHERED"}, None, "reason")
    assert (system.role, asked.role) == ("system", "user")
    assert system.content.startswith(TASK.role)
    assert asked.content == (
        "# Task: total\nAdd up the deliveries in `gather`.\n\n# Input: gather\nGATHERED\n\n"
        '# Form of the answer\n{\n  "total": integer,\n  "unit": string  // one of "apples", "crates"\n}'
    )


def test_one_call_for_all_has_every_instruction_in_order_and_one_field_for_each_subtask() -> None:
    asked = user(TASK, TASK.subtasks, {"notes.txt": "NOTES"}, None, "reason")
    places = [asked.index(subtask.instructions) for subtask in TASK.subtasks]
    assert places == sorted(places)
    assert re.findall(r"^# .*$", asked, re.MULTILINE) == [
        "# Step 1: gather",
        "# Step 2: total",
        "# Step 3: review",
        "# Input: notes.txt",
        "# Form of the answer",
    ]
    assert re.findall(r'^  "(\w+)"', asked, re.MULTILINE) == ["gather", "total", "review"]


@pytest.mark.parametrize(
    ("repair", "shown"),
    [
        ("none", ""),
        ("reason", "# Your last answer was rejected\nReason: total: Field required\nGive the whole answer again, corrected."),
        (
            "reason+reply",
            "# Your last answer was rejected\nReason: total: Field required\nIt was:\n"
            '{"unit": "apples"}\nGive the whole answer again, corrected.',
        ),
    ],
)
def test_the_repair_setting_says_what_is_appended(repair: str, shown: str) -> None:
    first = user(TASK, [TOTAL], {"gather": "G"}, None, repair)
    again = user(TASK, [TOTAL], {"gather": "G"}, REJECTED, repair)
    assert again == (f"{first}\n\n{shown}" if shown else first)


@given(st.dictionaries(NAMES, TYPES, min_size=1, max_size=4), st.booleans())
def test_a_form_names_each_field_once_in_order_in_balanced_braces(fields: dict[str, object], nested: bool) -> None:
    inner = create_model("Inner", __base__=Output, **{name: (type_, ...) for name, type_ in fields.items()})  # type: ignore[call-overload]
    outer = create_model("Outer", __base__=Output, parts=(list[inner], ...)) if nested else inner
    text = form_of(outer)
    names = re.findall(r'^\s*"(\w+)":', text, re.MULTILINE)
    assert names == (["parts", *fields] if nested else list(fields))
    assert text.count("{") == text.count("}")
    assert "$ref" not in text


def test_a_form_tells_bounds_choices_and_descriptions() -> None:
    class Judged(Output):
        grade: Literal["good", "übel"] = Field(description="of the whole")
        sure: float = Field(ge=0, le=1)
        note: str | None

    assert form_of(Judged) == (
        '{\n  "grade": string,  // of the whole; one of "good", "übel"\n'
        '  "sure": number from 0 to 1,\n  "note": string or null\n}'
    )


@pytest.mark.parametrize("pack", answered_packs())
def test_every_packs_form_names_every_field(pack: str) -> None:
    task = load_pack(pack, ROOTS).task
    whole = form(task.subtasks)
    for subtask in task.subtasks:
        for field in subtask.output.model_fields:
            assert f'"{field}": ' in form_of(subtask.output)
            assert f'"{field}": ' in whole


# Answers in code blocks


def test_code_is_asked_for_behind_the_json_and_nowhere_in_it() -> None:
    system, asked = render(TASK, [FUNCTION], {}, None, "reason", "fenced")
    assert system.content.endswith(
        "\nAnswer with one JSON object and then the code blocks of the given form, and nothing else."
    )
    assert asked.content.partition("# Form of the answer\n")[2] == (
        '{\n  "plan": string\n}\n\ncode:\n```python\nthe whole function\n```'
    )


def test_a_block_of_a_list_of_a_table_and_of_one_call_for_several_says_its_place() -> None:
    form = user(TASK, [PATCH, FILES], {}, None, "reason", "fenced").partition("# Form of the answer\n")[2]
    assert form == (
        '{\n  "patch": {\n    "edits": [{\n      "file": string\n    }, ...]\n  }\n}\n\n'
        "patch.edits[0].find:\n```python\nthe line as it stands\n```\npatch.edits[0].replace:\n```python\n...\n```\n"
        "files.files.NAME:\n```python\n...\n```\n"
        "The same for patch.edits[1].find and so on.\nOne such block for each NAME."
    )


def test_an_answer_that_is_nothing_but_code_is_asked_for_without_json() -> None:
    system, asked = render(TASK, [CODE_ALONE], {}, None, "reason", "fenced")
    assert system.content.endswith("\nAnswer with the code of the given form and nothing else.")
    assert asked.content.endswith("# Form of the answer\ncode:\n```python\n...\n```")


def test_a_repair_prompt_says_where_code_belongs() -> None:
    rejected = Rejected("function", "schema", "code: Field required")
    asked = user(TASK, [FUNCTION], {}, rejected, "reason", "fenced")
    assert asked.endswith("Give the whole answer again, corrected. Code stands in its code block behind the JSON.")


@pytest.mark.parametrize("answer_format", ["schema", "fenced"])
def test_where_no_output_is_code_every_format_asks_in_the_same_words(answer_format: AnswerFormat) -> None:
    for name in answered_packs():
        task = load_pack(name, ROOTS).task
        for subtask in task.subtasks:
            if answer_format == "schema" or not holds_code(answer_schema([subtask])):
                words = render(task, [subtask], {}, REJECTED, "reason")
                assert render(task, [subtask], {}, REJECTED, "reason", answer_format) == words
