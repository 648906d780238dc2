"""Whatever comes to a world's door is read, or refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bench.wire.problem import Problem
from bench.worlds.run.driver.tool_requests import MAX_INTEGER, arguments_of, expected_of, key_of, versions_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES.map(lambda value: json.dumps(value).encode()) | st.binary() | st.just(b"[" * 100_000) | st.just(b"9" * 5000))
def test_any_body_is_arguments_that_a_database_can_hold_or_one_line(body: bytes) -> None:
    try:
        given = arguments_of(body)
    except Problem as problem:
        assert problem.status == 400 and "\n" not in problem.message and len(problem.message) < 300
    else:
        assert json.loads(json.dumps(given, allow_nan=False)) == given
        assert all(abs(value) <= MAX_INTEGER for value in given.values() if isinstance(value, int))


@given(st.text() | st.lists(st.tuples(st.text(max_size=3), st.text("0123456789²٣ -", max_size=20))).map(str), VALUES)
def test_any_header_is_a_key_and_versions_or_one_line(header: str, meta: object) -> None:
    readers: tuple[tuple[Callable[[Any], object], object], ...] = (
        (key_of, header),
        (key_of, meta),
        (versions_of, header),
        (expected_of, meta),
    )
    for read, line in readers:
        try:
            result = read(line)
        except Problem as problem:
            assert problem.status == 400 and "\n" not in problem.message
        else:
            assert result is None or isinstance(result, str | dict)
            assert not isinstance(result, dict) or all(type(version) is int for version in result.values())


@given(st.lists(st.tuples(st.text("ab/1", min_size=1), st.integers(0, 10**17 - 1)), min_size=1, unique_by=lambda pair: pair[0]))
def test_versions_are_read_as_they_are_written(pairs: list[tuple[str, int]]) -> None:
    assert versions_of(", ".join(f"{thing}={version}" for thing, version in pairs)) == dict(pairs)
