"""What comes from outside is refused at the first thing that is wrong with it, in bounded time and memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cost import SLACK, costs_of
from hypothesis import given
from hypothesis import strategies as st
from little_worlds import ENVIRONMENT
from trials import TINY

from bench.common.bounds import MAX_LEVELS, MAX_VALUES, MIN_BYTES_PER_VALUE, excess_in, is_too_deep
from bench.common.errors import BenchError
from bench.record.chain import seal
from bench.record.files import GRADES, MANIFEST, RESPONSES, TEXTS, TRIALS
from bench.record.reading import read_grades, read_manifest, read_records, read_responses, read_texts
from bench.run.endpoint import responses, wire
from bench.run.experiment.config import load_config
from bench.run.serve.protocol import reason_of
from bench.run.trial.decoding import MAX_OBJECT_CHARS, Extracted
from bench.run.trial.verification import extract, validate
from bench.scenario import Json
from bench.wire.problem import Problem
from bench.worlds.run.driver.tool_requests import arguments_of
from bench.worlds.run.environment.calling import items_in, parse_arguments

SIZE = 8 * 2**20
"""Bytes: the bound of a request's body, and of a reply."""
SECONDS, MEBIBYTES = 1.0, 200.0
Case = tuple[str, str, int]
"""Where HERE stands, what is repeated in its place, and how many values are still read."""
UNITS = ("[]", '{"kind":"x"}', '"xxxxxxxxxxxxx"', '"%x":0')


def full(case: Case, size: int = SIZE) -> bytes:
    """JSON with as much of the unit as is not refused at sight, and no more than `size`; `%x` is another number each time."""
    whole, unit, most = case
    length = len(unit % 2**20 if "%" in unit else unit) + 1
    values = 1 + sum(map(unit.count, "[{"))
    many = min((size - len(whole)) // length, (most - 20) // values)
    units = (unit % number for number in range(2**20, 2**20 + many)) if "%" in unit else (unit for _ in range(many))
    opened, closed = "{}" if unit.startswith('"%x') else "[]"
    return whole.replace("HERE", f"{opened}{','.join(units)}{closed}").encode()


def in_file(case: Case) -> Path:
    """The same as the whole of a file."""
    path = Path(tempfile.mkdtemp()) / "card.json"
    path.write_bytes(full(case))
    return path


def in_manifest(case: Case) -> Path:
    return in_file(case).rename(Path(tempfile.mkdtemp()) / MANIFEST).parent


def in_lines(case: Case) -> Path:
    """The same as a line of all files of a run."""
    folder = Path(tempfile.mkdtemp())
    line = full(case)
    for name in (TRIALS, RESPONSES, GRADES):
        (folder / name).write_bytes(seal(line, "")[0])
    (folder / TEXTS).write_bytes(line + b"\n")
    return folder


def read_chat(body: bytes) -> None:
    with suppress(Problem):
        wire.chat_of(body)


def read_responses_request(body: bytes) -> None:
    with suppress(Problem):
        responses.chat_of(body)


def read_what_is_handed_in(body: bytes) -> None:
    with suppress(Problem):
        reason_of(body)


def read_call(body: bytes) -> None:
    with suppress(Problem):
        parse_arguments(ENVIRONMENT.tools[0], arguments_of(body))


def read_run(folder: Path) -> None:
    with suppress(BenchError):
        read_manifest(folder)


def read_lines(read: Callable[[Path], Any], folder: Path) -> None:
    with suppress(BenchError):
        list(read(folder))


def read_trials_line(folder: Path) -> None:
    (folder / GRADES).unlink()
    (folder / MANIFEST).touch()
    read_lines(read_records, folder)


def read_responses_line(folder: Path) -> None:
    read_lines(read_responses, folder)


def read_grades_line(folder: Path) -> None:
    read_lines(lambda folder: [read_grades(folder)], folder)


def read_texts_line(folder: Path) -> None:
    read_lines(read_texts, folder)


def in_answer(case: Case) -> bytes:
    return full(case, MAX_OBJECT_CHARS)


def read_answer(text: bytes) -> None:
    result = extract(text.decode())
    assert isinstance(result, Extracted)
    for subtask in TINY.task.subtasks:
        validate(subtask, result.value)


def in_config(case: Case) -> Path:
    path = in_file(case)
    path.write_bytes(b"model = " + path.read_bytes()[: 255 * 2**10])
    return path


def read_config(path: Path) -> None:
    with suppress(BenchError):
        load_config(path, {})


REQUEST, RECORD, WHOLE = MAX_VALUES, SIZE // MIN_BYTES_PER_VALUE, SIZE // (2 * MIN_BYTES_PER_VALUE)
"""How many values are read."""
PLACES: dict[str, tuple[Callable[[Any], None], Callable[[Case], Any], int, tuple[str, ...]]] = {
    "a chat completion": (
        read_chat,
        full,
        REQUEST,
        (
            "HERE",
            '{"messages":HERE}',
            '{"messages":[{"role":"user","content":HERE}]}',
            '{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":HERE}]}]}',
            '{"messages":[{"role":"user","content":""}],"tools":HERE}',
        ),
    ),
    "a request for a response": (
        read_responses_request,
        full,
        REQUEST,
        ("HERE", '{"input":HERE}', '{"input":[{"role":"user","content":HERE}]}', '{"input":"x","tools":HERE}'),
    ),
    "what is handed in": (read_what_is_handed_in, full, REQUEST, ("HERE",)),
    "a tool's arguments": (read_call, full, REQUEST, ("HERE", '{"order":HERE}')),
    "a manifest": (read_run, in_manifest, WHOLE, ('{"format":4,"models":HERE}', '{"format":4,"recordings":HERE}')),
    "a trial's record": (
        read_trials_line,
        in_lines,
        RECORD,
        (
            '{"kind":"trial","events":HERE}',
            '{"kind":"trial","events":[{"kind":"call","messages":HERE}]}',
            '{"kind":"session","trouble":HERE}',
        ),
    ),
    "a response's record": (read_responses_line, in_lines, RECORD, ("HERE", '{"messages":HERE}')),
    "a grade": (
        read_grades_line,
        in_lines,
        RECORD,
        (
            '{"kind":"grade","grade":{"parts":HERE}}',
            '{"kind":"grade","trial":"x","outcome":"solved","grade":{"correct":true,"score":1,"parts":HERE}}',
        ),
    ),
    "a text": (read_texts_line, in_lines, REQUEST, ('{"digest":"x","text":HERE}',)),
    "a model's answer": (read_answer, in_answer, 10**9, ('{"items":HERE}',)),
    "a config": (read_config, in_config, 10**9, ("HERE",)),
}


@pytest.mark.endurance
@pytest.mark.parametrize("place", PLACES)
def test_the_worst_that_fits_takes_a_second_and_200_megabytes_at_most(
    place: str, record_property: Callable[[str, object], None]
) -> None:
    read, prepare, most, wholes = PLACES[place]
    cases = [(whole, unit, most) for whole in wholes for unit in UNITS]
    cases.append((wholes[0], "[]", 10**9))
    costs = costs_of(read, cases, prepare)
    too_much = {case: cost for case, cost in costs.items() if cost.seconds > SLACK * SECONDS or cost.mebibytes > MEBIBYTES}
    record_property("tries", len(cases))
    record_property("processor", max(cost.seconds for cost in costs.values()))
    record_property("peak", max(cost.mebibytes for cost in costs.values()))
    assert too_much == {}
    assert max(cost.mebibytes for cost in costs.values()) > 1, "nothing was read"


def test_a_text_is_counted_by_what_stands_outside_of_its_strings() -> None:
    assert excess_in(json.dumps(["," * 2 * MAX_VALUES, '\\"[[' * MAX_VALUES]).encode()) == ""
    assert excess_in(json.dumps(["x"] * MAX_VALUES).encode()) == ""
    assert excess_in(json.dumps(["x"] * (MAX_VALUES + 1)).encode()) == f"it holds more than {MAX_VALUES:,} values"


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20))
def test_no_text_holds_fewer_separators_than_values_but_one(value: Any) -> None:
    strings = json.dumps(value).replace("\\\\", "").replace('\\"', "").split('"')[::2]
    assert sum(sum(map(each.count, ",[{")) for each in strings) >= items_in(value) // 2


def nested(levels: int, wrap: str) -> Json:
    value: Json = 1
    for level in range(levels):
        value = {"a": value} if wrap == "objects" or (wrap == "both" and level % 2) else [value]
    return value


@pytest.mark.parametrize("wrap", ["lists", "objects", "both"])
def test_a_value_may_have_so_many_levels_and_no_more(wrap: str) -> None:
    assert not is_too_deep(nested(MAX_LEVELS, wrap))
    assert is_too_deep(nested(MAX_LEVELS + 1, wrap)) and is_too_deep([1, nested(MAX_LEVELS, wrap)])
    assert is_too_deep(nested(100_000, wrap))


def test_a_wide_value_is_not_deep() -> None:
    assert not is_too_deep([[{"a": []}] * 1000] * 100) and not is_too_deep("[" * 1000) and not is_too_deep(None)
